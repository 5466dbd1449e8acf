from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc
import pytest

from crewd.core.events import AskOpened, AskSettled, RunFinished, RunStarted
from crewd.core.stimuli import Delete
from crewd.core.words import AskStatus, RunStatus
from crewd.v1 import ask_pb2, ask_service_pb2, run_pb2
from crewd.v1 import run_stream_pb2 as pb
from tests.rpc.world import AUTH, PATIENCE, World, a_world, an_ask, refusal_of, refused

RUN = "run_aaaaaaaaaa"
Responses = AsyncIterator[pb.WatchRunsResponse]


def watch(world: World, **filter_: object) -> Responses:
    which = run_pb2.RunFilter(**filter_)  # type: ignore[arg-type]
    return aiter(world.runs.WatchRuns(pb.WatchRunsRequest(filter=which), metadata=AUTH))


async def until(
    responses: Responses, enough: Callable[[pb.WatchRunsResponse], bool]
) -> list[pb.WatchRunsResponse]:
    """Return the responses up to the first that is enough."""
    got: list[pb.WatchRunsResponse] = []
    async with asyncio.timeout(PATIENCE):
        async for response in responses:
            got.append(response)
            if enough(response):
                break
    return got


def is_synced(response: pb.WatchRunsResponse) -> bool:
    return response.synced


async def finish(world: World, run_id: str) -> None:
    await world.supervisor.record(run_id, RunStarted(), RunFinished(status=RunStatus.FAILED))


async def test_all_runs_come_first_in_parts_and_then_synced(world: World) -> None:
    for number in range(130):
        await world.create(f"run_{number:03}")
    got = await until(watch(world), is_synced)
    assert [len(r.runs) for r in got] == [100, 30, 0]
    assert len({run.id for r in got for run in r.runs}) == 130


async def test_a_run_is_sent_whole_whenever_it_changes(world: World) -> None:
    responses = watch(world)
    await until(responses, is_synced)
    await world.create(RUN)
    (new,) = await until(responses, lambda r: bool(r.runs))
    await finish(world, RUN)
    got = await until(responses, lambda r: bool(r.runs))
    assert (new.runs[0].id, new.runs[0].status) == (RUN, run_pb2.RUN_STATUS_QUEUED)
    assert got[-1].runs[0].status == run_pb2.RUN_STATUS_FAILED


async def test_a_run_that_matches_no_more_or_is_deleted_is_taken_back(world: World) -> None:
    await world.create("run_a")
    await world.create("run_b")
    queued = watch(world, statuses=[run_pb2.RUN_STATUS_QUEUED])
    everything = watch(world)
    await until(queued, is_synced)
    await until(everything, is_synced)
    await finish(world, "run_a")
    gone = await until(queued, lambda r: bool(r.removed_run_ids))
    delete = Delete(actor=world.wiring.auth.actor(()))
    await world.supervisor.command("run_a", delete, None, lambda _state: b"")
    deleted = await until(everything, lambda r: bool(r.removed_run_ids))
    assert list(gone[-1].removed_run_ids) == list(deleted[-1].removed_run_ids) == ["run_a"]


async def test_asks_are_followed_until_they_are_settled(world: World) -> None:
    await world.create(RUN)
    which = ask_service_pb2.AskFilter(statuses=[ask_pb2.ASK_STATUS_OPEN])
    request = ask_service_pb2.WatchAsksRequest(filter=which)
    responses = aiter(world.asks.WatchAsks(request, metadata=AUTH))
    async with asyncio.timeout(PATIENCE):
        synced = await anext(responses)
        await world.supervisor.record(RUN, RunStarted(), AskOpened(an_ask("ask_a", RUN)))
        opened = await anext(responses)
        settled = AskSettled(
            ask_id="ask_a", task_id="build", attempt=1, outcome=AskStatus.TIMED_OUT
        )
        await world.supervisor.record(RUN, settled)
        removed = await anext(responses)
    assert synced.synced
    assert [ask.question for ask in opened.asks] == ["which?"]
    assert list(removed.removed_ask_ids) == ["ask_a"]


async def test_asks_of_a_deleted_run_are_taken_back(world: World) -> None:
    await world.create(RUN)
    await world.supervisor.record(RUN, RunStarted(), AskOpened(an_ask("ask_a", RUN)))
    request = ask_service_pb2.WatchAsksRequest()
    responses = aiter(world.asks.WatchAsks(request, metadata=AUTH))
    async with asyncio.timeout(PATIENCE):
        first, synced = await anext(responses), await anext(responses)
        await world.supervisor.record(RUN, RunFinished(status=RunStatus.FAILED))
        delete = Delete(actor=world.wiring.auth.actor(()))
        await world.supervisor.command(RUN, delete, None, lambda _state: b"")
        removed = await anext(responses)
    assert ([ask.id for ask in first.asks], synced.synced) == (["ask_a"], True)
    assert list(removed.removed_ask_ids) == ["ask_a"]


async def test_a_quiet_stream_beats() -> None:
    with TemporaryDirectory(prefix="crewd-") as folder:
        async with a_world(Path(folder), heartbeat_seconds=0.05) as world:
            await world.create(RUN)
            got = await until(watch(world), lambda r: r.HasField("heartbeat"))
            assert got[-1].heartbeat.sequence == world.feed.last_sequence


async def test_the_last_word_is_that_the_daemon_goes_away(world: World) -> None:
    responses = watch(world)
    await until(responses, is_synced)
    async with asyncio.timeout(PATIENCE):
        await world.server.stop("drained", restart_expected=False, grace_seconds=5)
        last = await anext(responses)
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await anext(responses)
    assert (last.draining.reason, last.draining.restart_expected) == ("drained", False)
    assert refusal_of(ended.value).reason == "DRAINING"


async def test_a_status_that_is_none_is_refused(world: World) -> None:
    got = await refused(anext(watch(world, statuses=[3, 99])))
    assert (got.reason, got.fields) == ("SPEC_INVALID", ["filter.statuses[1]"])
