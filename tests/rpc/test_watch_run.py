from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import grpc
import pytest

from crewd.core.events import MessagePosted, RunFinished, RunStarted, WarningRaised
from crewd.core.stimuli import Delete
from crewd.core.words import RunStatus
from crewd.v1 import run_stream_pb2 as pb
from crewd.v1.event_pb2 import Event
from tests.rpc.world import AUTH, PATIENCE, World, a_world, refusal_of, refused

RUN = "run_aaaaaaaaaa"


def a_message(text: str = "hello") -> MessagePosted:
    return MessagePosted(task_id="build", attempt=1, role="assistant", text=text)


def a_warning(number: int) -> WarningRaised:
    return WarningRaised(code="spill", message=str(number))


async def finish(world: World, run_id: str = RUN) -> None:
    await world.supervisor.record(run_id, RunStarted(), RunFinished(status=RunStatus.FAILED))


async def watched(world: World, **fields: object) -> list[pb.WatchRunResponse]:
    """Return all responses of a watch that ends by itself."""
    request = pb.WatchRunRequest(run_id=RUN, stop_when_finished=True, **fields)  # type: ignore[arg-type]
    async with asyncio.timeout(PATIENCE):
        return [r async for r in world.runs.WatchRun(request, metadata=AUTH)]


def events_of(responses: Sequence[pb.WatchRunResponse]) -> list[Event]:
    return [event for response in responses for event in response.events]


async def test_a_finished_run_is_told_to_its_end_and_the_stream_ends(world: World) -> None:
    await world.create(RUN)
    await finish(world)
    responses = await watched(world)
    events = events_of(responses)
    assert [e.kind for e in events] == ["run_created", "tasks_added", "run_started", "run_finished"]
    assert [e.run_sequence for e in events] == [1, 2, 3, 4]
    assert [r.caught_up for r in responses].count(True) == 1
    assert responses[0].store_id == world.log.store_id


async def test_a_watch_from_the_last_event_on_ends_at_once(world: World) -> None:
    await world.create(RUN)
    await finish(world)
    last = world.feed.last_sequence
    responses = await watched(world, after_sequence=last)
    assert [(r.caught_up, len(r.events)) for r in responses] == [(True, 0)]


async def test_what_happens_during_a_watch_is_told_as_it_happens(world: World) -> None:
    await world.create(RUN)
    call = world.runs.WatchRun(pb.WatchRunRequest(run_id=RUN), metadata=AUTH)
    async with asyncio.timeout(PATIENCE):
        first = await call.read()
        await world.supervisor.record(RUN, RunStarted())
        second = await call.read()
    assert isinstance(first, pb.WatchRunResponse)
    assert isinstance(second, pb.WatchRunResponse)
    assert first.caught_up
    assert not second.caught_up
    assert [e.kind for e in second.events] == ["run_started"]


async def test_random_reconnects_see_every_event_once(world: World) -> None:
    await world.create(RUN)
    random = Random(7)  # noqa: S311 - reproducible, not secret
    total = 1000

    async def produce() -> None:
        for number in range(total):
            last = world.supervisor.record(RUN, *[a_warning(number)] * random.randint(1, 3))
            await last
        await finish(world)

    producer = asyncio.create_task(produce())
    seen: list[Event] = []
    async with asyncio.timeout(60):
        while not seen or seen[-1].kind != "run_finished":
            after = seen[-1].sequence if seen else 0
            request = pb.WatchRunRequest(run_id=RUN, after_sequence=after, stop_when_finished=True)
            call = world.runs.WatchRun(request, metadata=AUTH)
            patience = random.randint(1, 60)
            async for response in call:
                seen.extend(response.events)
                patience -= 1
                if patience == 0:
                    break
            call.cancel()
        await producer
    assert [e.run_sequence for e in seen] == list(range(1, len(seen) + 1))
    assert sorted({e.sequence for e in seen}) == [e.sequence for e in seen]


async def test_batches_are_bounded_in_events_and_bytes(world: World) -> None:
    await world.create(RUN)
    await world.supervisor.record(RUN, *map(a_warning, range(600)))
    big = [WarningRaised(code="big", message="x" * 16_000)] * 200
    await world.supervisor.record(RUN, *big)
    await finish(world)
    responses = await watched(world)
    assert max(len(r.events) for r in responses) == 256
    assert max(r.ByteSize() for r in responses) <= 512 * 1024 + 1024
    assert len(events_of(responses)) == 804


async def test_kinds_narrow_a_watch_that_still_ends_with_its_run(world: World) -> None:
    await world.create(RUN)
    await world.supervisor.record(RUN, *map(a_warning, range(500)), RunStarted())
    watch = asyncio.create_task(watched(world, kinds=["run_started", "warning_raised"]))
    only = asyncio.create_task(watched(world, kinds=["run_created"]))
    await world.supervisor.record(RUN, RunFinished(status=RunStatus.FAILED))
    assert len(events_of(await watch)) == 501
    assert [e.kind for e in events_of(await only)] == ["run_created"]


async def test_an_unknown_kind_is_refused(world: World) -> None:
    await world.create(RUN)
    request = pb.WatchRunRequest(run_id=RUN, kinds=["run_created", "run_sneezed"])
    got = await refused(anext(aiter(world.runs.WatchRun(request, metadata=AUTH))))
    assert (got.reason, got.fields) == ("SPEC_INVALID", ["kinds[1]"])


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"run_id": "run_zzzzzzzzzz"}, "RUN_NOT_FOUND"),
        ({"run_id": ""}, "SPEC_INVALID"),
        ({"run_id": RUN, "after_sequence": 4000}, "CURSOR_EXPIRED"),
        ({"run_id": RUN, "store_id": "another"}, "CURSOR_EXPIRED"),
    ],
)
async def test_what_cannot_be_followed_is_refused(
    world: World, fields: dict[str, str | int], reason: str
) -> None:
    await world.create(RUN)
    request = pb.WatchRunRequest(**fields)  # type: ignore[arg-type]
    listing = pb.ListEventsRequest(**fields)  # type: ignore[arg-type]
    got = await refused(anext(aiter(world.runs.WatchRun(request, metadata=AUTH))))
    assert got.reason == reason
    assert (await refused(world.runs.ListEvents(listing, metadata=AUTH))).reason == reason


async def test_a_quiet_watch_beats_with_the_sequence_it_has_searched() -> None:
    with TemporaryDirectory(prefix="crewd-") as folder:
        async with a_world(Path(folder), heartbeat_seconds=0.05) as world:
            await world.create(RUN)
            request = pb.WatchRunRequest(run_id=RUN, kinds=["run_finished"])
            call = world.runs.WatchRun(request, metadata=AUTH)
            async with asyncio.timeout(PATIENCE):
                await call.read()
                last = await world.supervisor.record(RUN, RunStarted())
                await world.create("run_bbbbbbbbbb")
                later = world.feed.last_sequence
                beats = [await call.read() for _ in range(2)]
    assert later > last
    assert all(isinstance(beat, pb.WatchRunResponse) and not beat.events for beat in beats)
    assert [beat.heartbeat.sequence for beat in beats if isinstance(beat, pb.WatchRunResponse)] == [
        later,
        later,
    ]


async def test_the_last_word_of_a_stream_is_that_the_daemon_goes_away(world: World) -> None:
    await world.create(RUN)
    call = world.runs.WatchRun(pb.WatchRunRequest(run_id=RUN), metadata=AUTH)
    async with asyncio.timeout(PATIENCE):
        await call.read()
        await world.server.stop("an upgrade", restart_expected=True, grace_seconds=5)
        said = await call.read()
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await call.read()
    assert isinstance(said, pb.WatchRunResponse)
    assert (said.draining.reason, said.draining.restart_expected) == ("an upgrade", True)
    assert refusal_of(ended.value).reason == "DRAINING"


async def test_a_watch_of_a_deleted_run_ends_with_its_deletion(world: World) -> None:
    await world.create(RUN)
    await finish(world)
    responses = aiter(world.runs.WatchRun(pb.WatchRunRequest(run_id=RUN), metadata=AUTH))
    async with asyncio.timeout(PATIENCE):
        await anext(responses)
        delete = Delete(actor=world.wiring.auth.actor(()))
        await world.supervisor.command(RUN, delete, None, lambda _state: b"")
        rest = [response async for response in responses]
    assert [e.kind for e in events_of(rest)] == ["run_deleted"]


async def test_one_who_does_not_read_holds_up_nobody(world: World) -> None:
    await world.create(RUN)
    slow = aiter(world.runs.WatchRun(pb.WatchRunRequest(run_id=RUN), metadata=AUTH))
    async with asyncio.timeout(PATIENCE):
        await anext(slow)
    text = "x" * 15_000
    for number in range(60):
        big = [WarningRaised(code=str(number), message=text)] * 20
        async with asyncio.timeout(PATIENCE):
            await world.supervisor.record(RUN, *big)
    await finish(world)
    fast = events_of(await watched(world))
    late: list[Event] = []
    async with asyncio.timeout(PATIENCE):
        async for response in slow:
            late.extend(response.events)
            if late and late[-1].kind == "run_finished":
                break
    assert len(fast) == 1204
    assert [e.sequence for e in late] == [e.sequence for e in fast][2:]


async def test_chatter_that_comes_bit_by_bit_is_sent_together(world: World) -> None:
    await world.create(RUN)
    call = world.runs.WatchRun(pb.WatchRunRequest(run_id=RUN), metadata=AUTH)
    async with asyncio.timeout(PATIENCE):
        await call.read()
        for _ in range(5):
            await world.supervisor.record(RUN, a_message())
        got: list[int] = []
        while sum(got) < 5:
            response = await call.read()
            assert isinstance(response, pb.WatchRunResponse)
            got.append(len(response.events))
    assert len(got) < 5


async def test_events_are_listed_page_by_page(world: World) -> None:
    await world.create(RUN)
    await world.supervisor.record(RUN, *map(a_warning, range(48)))
    pages: list[pb.ListEventsResponse] = []
    token = ""
    while not pages or token:
        request = pb.ListEventsRequest(run_id=RUN, page_size=20, page_token=token)
        pages.append(await world.runs.ListEvents(request, metadata=AUTH))
        token = pages[-1].next_page_token
    listed = [event.run_sequence for page in pages for event in page.events]
    assert listed == list(range(1, 51))
    assert {page.as_of_sequence for page in pages} == {world.feed.last_sequence}
