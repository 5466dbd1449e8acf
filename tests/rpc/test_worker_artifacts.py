from __future__ import annotations

import grpc
import pytest

from crewd.v1 import artifact_pb2
from crewd.v1 import worker_service_pb2 as pb
from crewd.v1.run_artifact_pb2 import ListArtifactsRequest, ReadArtifactRequest
from tests.rpc.workers import RUN, WORKER, ended, working
from tests.rpc.world import AUTH, World, refused


def an_artifact(**fields: object) -> pb.RecordArtifactRequest:
    given = {"name": "report.md", "request_id": "a1", **fields}
    return pb.RecordArtifactRequest(**given)  # type: ignore[arg-type]


async def recorded(world: World, **fields: object) -> artifact_pb2.Artifact:
    request = an_artifact(**fields)
    return (await world.workers.RecordArtifact(request, metadata=WORKER)).artifact


async def content(world: World, artifact_id: str) -> bytes:
    read = world.runs.ReadArtifact(ReadArtifactRequest(artifact_id=artifact_id), metadata=AUTH)
    return b"".join([part.data async for part in read])


async def test_a_file_is_kept_as_it_was_when_the_call_returned(world: World) -> None:
    await working(world)
    file = world.work / "out.md"
    file.write_text("# found\n")
    artifact = await recorded(
        world, path="out.md", kind=artifact_pb2.ARTIFACT_KIND_REPORT, description="what I found"
    )
    file.unlink()
    assert await content(world, artifact.id) == b"# found\n"
    assert (artifact.name, artifact.source_path, artifact.size_bytes) == ("report.md", "out.md", 8)
    assert (artifact.run_id, artifact.task_id, artifact.attempt) == (RUN, "build", 1)
    assert (artifact.kind, artifact.description) == (
        artifact_pb2.ARTIFACT_KIND_REPORT,
        "what I found",
    )
    assert artifact.create_time.seconds > 0
    listed = await world.runs.ListArtifacts(ListArtifactsRequest(run_id=RUN), metadata=AUTH)
    assert [each.id for each in listed.artifacts] == [artifact.id]


async def test_a_name_may_have_folders(world: World) -> None:
    await working(world)
    assert (await recorded(world, data=b"x", name="out/report.md")).name == "out/report.md"


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (b"plain words", "text/plain; charset=utf-8"),
        (b"\x00\xff\x01", "application/octet-stream"),
        (b"", "text/plain; charset=utf-8"),
    ],
)
async def test_bytes_are_kept_as_they_are(world: World, data: bytes, media_type: str) -> None:
    await working(world)
    artifact = await recorded(world, data=data)
    assert (await content(world, artifact.id), artifact.media_type) == (data, media_type)


async def test_the_same_request_again_records_nothing_more(world: World) -> None:
    await working(world)
    file = world.work / "out.md"
    file.write_text("first")
    first = await recorded(world, path=str(file))
    file.unlink()
    assert await recorded(world, path=str(file)) == first


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({}, ["path"]),
        ({"path": ""}, ["path"]),
        ({"path": "x\0y"}, ["path"]),
        ({"path": "x" * 4097}, ["path"]),
        ({"path": "../secret"}, ["path"]),
        ({"path": "/etc/passwd"}, ["path"]),
        ({"path": "not-there"}, ["path"]),
        ({"data": b"x" * (8 * 1024 * 1024 + 1)}, ["data"]),
        ({"data": b"x", "name": " "}, ["name"]),
        ({"data": b"x", "name": "x" * 201}, ["name"]),
        ({"data": b"x", "name": "a\x1bb"}, ["name"]),
        ({"data": b"x", "name": "out/../../a"}, ["name"]),
        ({"data": b"x", "name": "/a"}, ["name"]),
        ({"data": b"x", "name": "a//b"}, ["name"]),
        ({"data": b"x", "name": "a\\b"}, ["name"]),
        ({"data": b"x", "kind": artifact_pb2.ARTIFACT_KIND_PROMPT}, ["kind"]),
        ({"data": b"x", "kind": 99}, ["kind"]),
        ({"data": b"x", "media_type": "text"}, ["media_type"]),
        ({"data": b"x", "description": "x" * 1025}, ["description"]),
    ],
)
async def test_what_cannot_be_kept_is_told_field_by_field(
    world: World, fields: dict[str, object], wrong: list[str]
) -> None:
    await working(world)
    got = await refused(world.workers.RecordArtifact(an_artifact(**fields), metadata=WORKER))
    assert (got.code, got.fields) == (grpc.StatusCode.INVALID_ARGUMENT, wrong)


async def test_a_full_disk_is_told_and_nothing_is_recorded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await working(world)

    def full(*_what: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(world.wiring.artifacts, "keep_bytes", full)
    call = world.workers.RecordArtifact(an_artifact(data=b"x"), metadata=WORKER)
    assert (await refused(call)).reason == "DISK_LOW"
    listed = await world.runs.ListArtifacts(ListArtifactsRequest(run_id=RUN), metadata=AUTH)
    assert list(listed.artifacts) == []


async def test_an_attempt_that_has_ended_keeps_nothing_more(world: World) -> None:
    await working(world)
    await ended(world)
    call = world.workers.RecordArtifact(an_artifact(data=b"x"), metadata=WORKER)
    assert (await refused(call)).reason == "TOKEN_INVALID"
    assert world.wiring.artifacts.runs() == []
