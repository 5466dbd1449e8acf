"""A worker is killed: how soon a client that watches knows."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator

from crewd_client import watch_run
from crewd_client.v1.event_pb2 import Event
from crewd_client.v1.spec_pb2 import (
    FAILURE_MODE_CONTINUE,
    RetryPolicy,
    RunLimits,
    TaskSpec,
)
from tests.bench.drive import AT_ONCE
from tests.bench.place import a_daemon
from tests.bench.rows import MILLISECONDS, Row, at_most, middle, told
from tests.bench.scale import Scale

_SECONDS = 60.0


async def measure(scale: Scale) -> AsyncIterator[Row]:
    count = min(AT_ONCE, scale.pick(AT_ONCE, 6))
    async with a_daemon(scale.folder) as desk:
        run_id = await desk.submit(
            *(TaskSpec(id=f"t{n}", command=["/usr/bin/sleep", "600"]) for n in range(count)),
            limits=RunLimits(max_concurrent_workers=AT_ONCE),
            failure_mode=FAILURE_MODE_CONTINUE,
            retry=RetryPolicy(max_attempts=1),
        )
        async with asyncio.timeout(_SECONDS):
            taken = await _kill_each(watch_run(desk.client, run_id), count)
    yield at_most("dead worker noticed by a client, p50", middle(taken), MILLISECONDS, 100)
    yield told("the slowest", max(taken), MILLISECONDS)


async def _kill_each(events: AsyncIterator[Event], count: int) -> list[float]:
    """Kill one worker at a time; return the milliseconds until its end was told."""
    pids: list[int] = []
    taken: list[float] = []
    killed_at = 0.0
    async for event in events:
        if event.kind == "attempt_started":
            pids.append(event.attempt_started.pid)
        elif event.kind == "attempt_ended":
            taken.append(1000 * (time.perf_counter() - killed_at))
        if event.kind in {"attempt_started", "attempt_ended"} and len(pids) + len(taken) >= count:
            if not pids:
                break
            await asyncio.sleep(0.05)
            killed_at = time.perf_counter()
            os.kill(pids.pop(), signal.SIGKILL)
    return taken
