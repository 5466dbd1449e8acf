"""Watchers that do not read, and many that have nothing to read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import cast

from crewd_client import watch_run
from crewd_client.v1.event_pb2 import Event
from crewd_client.v1.run_pb2 import RUN_STATUS_COMPLETED
from crewd_client.v1.run_stream_pb2 import WatchRunRequest, WatchRunResponse
from crewd_client.v1.spec_pb2 import RunLimits
from tests.support.desk import Desk, plain, shell, worker

MESSAGES = 8000
IDLE_WATCHERS = 200


async def test_a_watcher_that_stops_reading_holds_up_nobody(desk: Desk) -> None:
    run_id = await desk.submit(worker("a", "ask q", f"chatter {MESSAGES} 1000", "result ok"))
    request = WatchRunRequest(run_id=run_id, stop_when_finished=True)
    stuck = cast("AsyncIterator[WatchRunResponse]", desk.client.runs.WatchRun(request))
    first = await anext(stuck)
    await desk.answer((await desk.asked(run_id)).id, "go")
    assert (await desk.ended(run_id)).status == RUN_STATUS_COMPLETED
    others = await desk.submit(*[shell(f"t{n}", "true") for n in range(20)])
    assert (await desk.ended(others)).status == RUN_STATUS_COMPLETED
    seen = [*first.events]
    async for response in stuck:
        seen.extend(response.events)
    assert [event.run_sequence for event in seen] == list(range(1, len(seen) + 1))
    assert sum(event.kind == "message_posted" for event in seen) == MESSAGES


async def test_two_hundred_idle_watchers_hold_up_nobody_and_miss_nothing(desk: Desk) -> None:
    idle = await desk.submit(worker("a", "ask q", "result ok"))
    ask = await desk.asked(idle)
    caught_up = asyncio.Semaphore(0)
    watching = [asyncio.create_task(watch(desk, idle, caught_up)) for _ in range(IDLE_WATCHERS)]
    for _ in watching:
        await caught_up.acquire()
    busy = await desk.submit(
        *[plain(f"t{number}") for number in range(20)], limits=RunLimits(max_concurrent_workers=4)
    )
    assert (await desk.ended(busy)).status == RUN_STATUS_COMPLETED
    await desk.answer(ask.id, "go")
    seen = await asyncio.gather(*watching)
    told = [event.sequence for event in await desk.events(idle)]
    assert all(each == told for each in seen)


async def watch(desk: Desk, run_id: str, caught_up: asyncio.Semaphore) -> list[int]:
    """Watch to the end; tell when the question has been seen."""
    seen: list[int] = []
    async with aclosing(watch_run(desk.client, run_id)) as events:
        event: Event
        async for event in events:
            seen.append(event.sequence)
            if event.kind == "ask_opened":
                caught_up.release()
    return seen
