from __future__ import annotations

import asyncio

import pytest

from crewd.core.events import AttemptEnded, AttemptStarted, AttemptStarting, RunStarted
from crewd.core.marks import OutputRead
from crewd.core.words import Outcome
from crewd.v1 import run_stream_pb2 as pb
from crewd.workers.lines import Stream
from crewd.workers.transcript import Transcript
from tests.rpc.world import AUTH, PATIENCE, World, refused

RUN = "run_aaaaaaaaaa"


async def started(world: World) -> Transcript:
    await world.create(RUN)
    await world.supervisor.record(
        RUN,
        RunStarted(),
        AttemptStarting(task_id="build", attempt=1, adapter="command", epoch="e"),
        AttemptStarted(task_id="build", attempt=1, pid=42),
    )
    return Transcript(world.wiring.transcripts, (RUN, "build", 1))


async def written(world: World, transcript: Transcript, data: bytes) -> None:
    """Have the worker say this, and commit it."""
    await asyncio.to_thread(transcript.append, Stream.STDOUT, data)
    await committed(world, transcript.length(Stream.STDOUT))


async def committed(world: World, length: int) -> None:
    mark = OutputRead(
        task_id="build",
        attempt=1,
        stdout_offset=length,
        stderr_offset=0,
        stdout_bytes=length,
        stderr_bytes=0,
        adapter_state="{}",
    )
    await world.supervisor.note(RUN, mark)


async def ended(world: World, transcript: Transcript) -> None:
    length = transcript.length(Stream.STDOUT)
    event = AttemptEnded(
        task_id="build", attempt=1, outcome=Outcome.COMPLETED, exit_code=0, stdout_bytes=length
    )
    await world.supervisor.record(RUN, event)


async def read(world: World, **fields: object) -> list[pb.ReadOutputResponse]:
    request = pb.ReadOutputRequest(run_id=RUN, task_id="build", **fields)  # type: ignore[arg-type]
    async with asyncio.timeout(PATIENCE):
        return [r async for r in world.runs.ReadOutput(request, metadata=AUTH)]


def text_of(responses: list[pb.ReadOutputResponse]) -> bytes:
    return b"".join(r.data for r in responses)


async def test_only_what_is_committed_is_read(world: World) -> None:
    transcript = await started(world)
    await asyncio.to_thread(transcript.append, Stream.STDOUT, b"0123456789")
    await committed(world, 6)
    (response,) = await read(world)
    assert (response.attempt, response.offset, response.data) == (1, 0, b"012345")
    assert (response.next_offset, response.eof) == (6, False)


@pytest.mark.parametrize(
    ("offset", "limit", "data", "eof"),
    [
        (0, 0, b"0123456789", True),
        (4, 3, b"456", False),
        (-3, 0, b"789", True),
        (-99, 2, b"01", False),
        (10, 0, b"", True),
    ],
)
async def test_a_stretch_of_the_output_is_read(
    world: World, offset: int, limit: int, data: bytes, *, eof: bool
) -> None:
    transcript = await started(world)
    await written(world, transcript, b"0123456789")
    await ended(world, transcript)
    responses = await read(world, offset=offset, limit=limit)
    assert (text_of(responses), responses[-1].eof) == (data, eof)


async def test_long_output_comes_in_chunks(world: World) -> None:
    transcript = await started(world)
    data = bytes(range(256)) * 3000
    await written(world, transcript, data)
    await ended(world, transcript)
    responses = await read(world)
    assert text_of(responses) == data
    assert max(len(r.data) for r in responses) <= 256 * 1024
    assert [r.eof for r in responses].count(True) == 1


async def test_following_goes_on_until_the_attempt_has_ended(world: World) -> None:
    transcript = await started(world)
    await written(world, transcript, b"one ")
    follow = asyncio.create_task(read(world, follow=True))
    await written(world, transcript, b"two ")
    await written(world, transcript, b"three")
    await ended(world, transcript)
    responses = await follow
    assert (text_of(responses), responses[-1].eof) == (b"one two three", True)


async def test_following_waits_for_the_first_attempt(world: World) -> None:
    await world.create(RUN)
    (nothing,) = await read(world)
    follow = asyncio.create_task(read(world, follow=True))
    await world.supervisor.record(
        RUN,
        RunStarted(),
        AttemptStarting(task_id="build", attempt=1, adapter="command", epoch="e"),
    )
    transcript = Transcript(world.wiring.transcripts, (RUN, "build", 1))
    await written(world, transcript, b"hello")
    await ended(world, transcript)
    assert (nothing.attempt, nothing.data, nothing.eof) == (0, b"", False)
    assert text_of(await follow) == b"hello"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"offset": 6}, "OFFSET_OUT_OF_RANGE"),
        ({"offset": 6, "follow": True}, "OFFSET_OUT_OF_RANGE"),
        ({"attempt": 2}, "TASK_NOT_FOUND"),
        ({"task_id": "other"}, "TASK_NOT_FOUND"),
        ({"run_id": "run_other"}, "RUN_NOT_FOUND"),
        ({"stream": 9}, "SPEC_INVALID"),
        ({"limit": -1}, "SPEC_INVALID"),
    ],
)
async def test_what_is_not_there_is_refused(
    world: World, fields: dict[str, str | int], reason: str
) -> None:
    transcript = await started(world)
    await written(world, transcript, b"12345")
    await ended(world, transcript)
    request = pb.ReadOutputRequest(**{"run_id": RUN, "task_id": "build", **fields})  # type: ignore[arg-type]
    got = await refused(anext(aiter(world.runs.ReadOutput(request, metadata=AUTH))))
    assert got.reason == reason


async def test_a_reader_is_cut_off_when_the_daemon_goes_away(world: World) -> None:
    transcript = await started(world)
    await written(world, transcript, b"12345")
    request = pb.ReadOutputRequest(run_id=RUN, task_id="build", follow=True)
    responses = aiter(world.runs.ReadOutput(request, metadata=AUTH))
    async with asyncio.timeout(PATIENCE):
        await anext(responses)
        await world.server.stop("drained", restart_expected=True, grace_seconds=5)
    assert (await refused(anext(responses))).reason == "DRAINING"
