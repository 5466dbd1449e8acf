from __future__ import annotations

import asyncio
from hashlib import sha256

import pytest
from grpc import StatusCode
from grpc.aio import AioRpcError

from crewd.core.events import (
    ArtifactRecorded,
    AttemptEnded,
    AttemptStarted,
    AttemptStarting,
    RunFinished,
    RunStarted,
    TaskFinished,
)
from crewd.core.model import Artifact
from crewd.core.words import ArtifactKind, Outcome, RunStatus, TaskStatus
from crewd.v1 import run_artifact_pb2 as pb
from crewd.v1 import run_service_pb2, run_task_pb2
from crewd.v1.artifact_pb2 import ARTIFACT_KIND_FILE, ARTIFACT_KIND_LOG, ARTIFACT_KIND_REPORT
from crewd.workers.lines import Stream
from crewd.workers.transcript import Transcript
from tests.rpc.world import AUTH, PATIENCE, World, refusal_of, refused

RUN = "run_aaaaaaaaaa"


async def begun(world: World) -> None:
    await world.create(RUN, "build", "check")
    await world.supervisor.record(
        RUN,
        RunStarted(),
        AttemptStarting(task_id="build", attempt=1, adapter="pi", epoch="e"),
        AttemptStarted(task_id="build", attempt=1, pid=42),
    )


async def kept(  # noqa: PLR0913 - a test names only what it is about
    world: World,
    artifact_id: str,
    text: str = "",
    *,
    name: str = "notes",
    task_id: str = "build",
    kind: ArtifactKind = ArtifactKind.FILE,
) -> Artifact:
    """Have the run keep a text, as if a worker had handed it in."""
    made = await asyncio.to_thread(world.wiring.artifacts.keep_text, RUN, text)
    row = Artifact(
        id=artifact_id,
        run_id=RUN,
        task_id=task_id,
        attempt=1,
        name=name,
        kind=kind,
        size_bytes=made.size,
        sha256=made.sha256,
    )
    await world.supervisor.record(RUN, ArtifactRecorded(row))
    return row


async def listed(world: World, **fields: object) -> pb.ListArtifactsResponse:
    request = pb.ListArtifactsRequest(run_id=RUN, **fields)  # type: ignore[arg-type]
    return await world.runs.ListArtifacts(request, metadata=AUTH)


async def read(world: World, **fields: object) -> list[pb.ReadArtifactResponse]:
    request = pb.ReadArtifactRequest(**fields)  # type: ignore[arg-type]
    async with asyncio.timeout(PATIENCE):
        return [r async for r in world.runs.ReadArtifact(request, metadata=AUTH)]


def text_of(responses: list[pb.ReadArtifactResponse]) -> str:
    return b"".join(r.data for r in responses).decode()


async def test_what_is_kept_is_listed_as_it_was_recorded_page_by_page(world: World) -> None:
    await begun(world)
    for number in range(5):
        await kept(world, f"art_{9 - number}", str(number))
    first = await listed(world, page_size=3)
    rest = await listed(world, page_size=3, page_token=first.next_page_token)
    ids = [a.id for page in (first, rest) for a in page.artifacts]
    assert ids == ["art_9", "art_8", "art_7", "art_6", "art_5"]
    assert not rest.next_page_token
    last = rest.artifacts[-1]
    assert (last.name, last.kind, last.size_bytes) == ("notes", ARTIFACT_KIND_FILE, 1)
    assert last.sha256 == sha256(b"4").hexdigest()
    assert last.last_sequence == rest.as_of_sequence


async def test_a_list_is_narrowed_by_task_and_kind(world: World) -> None:
    await begun(world)
    await kept(world, "art_1", task_id="check")
    await kept(world, "art_2", kind=ArtifactKind.REPORT)
    await kept(world, "art_3", kind=ArtifactKind.LOG)
    kinds = [ARTIFACT_KIND_LOG, ARTIFACT_KIND_REPORT]
    assert [a.id for a in (await listed(world, task_id="build")).artifacts] == ["art_2", "art_3"]
    assert [a.id for a in (await listed(world, kinds=kinds)).artifacts] == ["art_2", "art_3"]
    assert not (await listed(world, task_id="check", kinds=kinds)).artifacts
    refusal = await refused(listed(world, kinds=[99]))
    assert (refusal.reason, refusal.fields) == ("SPEC_INVALID", ["kinds[0]"])


async def test_an_unknown_run_or_artifact_is_not_found(world: World) -> None:
    missing = pb.ListArtifactsRequest(run_id="run_b")
    assert (await refused(world.runs.ListArtifacts(missing, metadata=AUTH))).reason == (
        "RUN_NOT_FOUND"
    )
    await begun(world)
    await kept(world, "art_1")
    for reason, fields in (
        ("RUN_NOT_FOUND", {"run_id": "run_b", "name": "notes"}),
        ("ARTIFACT_NOT_FOUND", {"run_id": RUN, "name": "note"}),
        ("ARTIFACT_NOT_FOUND", {"artifact_id": "art_2"}),
        ("ARTIFACT_NOT_FOUND", {"artifact_id": "art_1", "run_id": "run_b"}),
        ("SPEC_INVALID", {"artifact_id": "art_1", "name": "notes"}),
        ("SPEC_INVALID", {"run_id": RUN}),
        ("SPEC_INVALID", {"name": "notes"}),
        ("SPEC_INVALID", {"artifact_id": "art_1", "limit": -1}),
        ("OFFSET_OUT_OF_RANGE", {"artifact_id": "art_1", "offset": 1}),
    ):
        assert (await refused(read(world, **fields))).reason == reason


async def test_the_latest_of_a_name_is_read_unless_one_is_named(world: World) -> None:
    await begun(world)
    await kept(world, "art_2", "old")
    await kept(world, "art_1", "new")
    (response,) = await read(world, run_id=RUN, name="notes")
    assert (response.artifact.id, response.data, response.eof) == ("art_1", b"new", True)
    (response,) = await read(world, artifact_id="art_2")
    assert (response.artifact.id, response.data) == ("art_2", b"old")
    (empty,) = await read(world, artifact_id=(await kept(world, "art_3")).id)
    assert (empty.artifact.id, empty.data, empty.eof) == ("art_3", b"", True)


@pytest.mark.parametrize(
    ("offset", "limit", "data", "eof"),
    [
        (0, 0, "0123456789", True),
        (4, 3, "456", False),
        (-3, 0, "789", True),
        (-99, 2, "01", False),
        (10, 0, "", True),
        (7, 99, "789", True),
    ],
)
async def test_a_part_is_read(
    world: World, offset: int, limit: int, data: str, *, eof: bool
) -> None:
    await begun(world)
    await kept(world, "art_1", "0123456789")
    (response,) = await read(world, artifact_id="art_1", offset=offset, limit=limit)
    assert (response.data.decode(), response.eof) == (data, eof)
    assert response.next_offset == response.offset + len(data)


async def test_a_long_one_comes_in_stretches(world: World) -> None:
    await begun(world)
    text = "line\n" * 120_000
    await kept(world, "art_1", text)
    responses = await read(world, artifact_id="art_1")
    assert text_of(responses) == text
    assert [len(r.data) for r in responses] == [262_144, 262_144, 75_712]
    assert [r.HasField("artifact") for r in responses] == [True, False, False]
    assert [r.eof for r in responses] == [False, False, True]


@pytest.mark.parametrize("damage", ["gone", "short", "other"])
async def test_damaged_bytes_are_an_error_and_not_silence(world: World, damage: str) -> None:
    await begun(world)
    row = await kept(world, "art_1", "all that was kept")
    path = world.wiring.artifacts.folder(RUN) / row.sha256
    data = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(data[:-1] if damage == "short" else data.upper())
    with pytest.raises(AioRpcError) as error:
        await read(world, artifact_id="art_1")
    refusal = refusal_of(error.value)
    assert (refusal.code, refusal.reason) == (StatusCode.DATA_LOSS, "ARTIFACT_DAMAGED")
    assert refusal.metadata == {"artifact_id": "art_1"}
    assert "notes" in refusal.message


async def test_a_transcript_is_what_the_worker_wrote(world: World) -> None:
    await begun(world)
    transcript = Transcript(world.wiring.transcripts, (RUN, "build", 1))
    await asyncio.to_thread(transcript.append, Stream.STDOUT, b"said\nand more, not committed")
    row = Artifact(
        id="art_1",
        run_id=RUN,
        task_id="build",
        attempt=1,
        name="transcript.jsonl",
        kind=ArtifactKind.TRANSCRIPT,
        size_bytes=5,
    )
    await world.supervisor.record(RUN, ArtifactRecorded(row))
    (response,) = await read(world, run_id=RUN, name="transcript.jsonl")
    assert (response.data, response.eof, response.truncated_before) == (b"said\n", True, False)
    request = run_task_pb2.GetTaskRequest(run_id=RUN, task_id="build")
    (attempt,) = (await world.runs.GetTask(request, metadata=AUTH)).task.attempts
    assert (attempt.transcript_artifact_id, attempt.prompt_artifact_id) == ("art_1", "")


async def test_a_deleted_run_has_none_and_its_bytes_are_freed(world: World) -> None:
    await begun(world)
    await kept(world, "art_1", "x" * 1000)
    end = AttemptEnded(task_id="build", attempt=1, outcome=Outcome.COMPLETED)
    await world.supervisor.record(
        RUN,
        end,
        TaskFinished(task_id="build", status=TaskStatus.COMPLETED),
        TaskFinished(task_id="check", status=TaskStatus.CANCELLED),
        RunFinished(status=RunStatus.CANCELLED),
    )
    request = run_service_pb2.DeleteRunRequest(run_id=RUN)
    assert (await world.runs.DeleteRun(request, metadata=AUTH)).freed_bytes == 1000
    assert (await refused(read(world, artifact_id="art_1"))).reason == "ARTIFACT_NOT_FOUND"
    assert (await refused(listed(world))).reason == "RUN_NOT_FOUND"
    assert world.wiring.artifacts.runs() == []
