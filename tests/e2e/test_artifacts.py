"""What workers hand in is kept, found again, and goes with its run."""

from __future__ import annotations

import asyncio
from functools import partial
from hashlib import sha256

import pytest

from crewd_client import NotFoundError, list_artifacts, read_artifact
from crewd_client.v1.artifact_pb2 import (
    ARTIFACT_KIND_FILE,
    ARTIFACT_KIND_REPORT,
    ARTIFACT_KIND_RESULT,
    Artifact,
)
from crewd_client.v1.run_artifact_pb2 import ReadArtifactRequest
from crewd_client.v1.run_pb2 import RUN_STATUS_COMPLETED
from crewd_client.v1.run_service_pb2 import DeleteRunRequest
from tests.support.daemon import Daemon, eventually
from tests.support.desk import Desk, shell, worker


async def kept(desk: Desk, run_id: str) -> list[Artifact]:
    return [artifact async for artifact in list_artifacts(desk.client, run_id)]


async def read(desk: Desk, artifact_id: str) -> bytes:
    request = ReadArtifactRequest(artifact_id=artifact_id)
    return b"".join([part.data async for part in read_artifact(desk.client, request)])


async def warnings(desk: Desk, run_id: str) -> list[str]:
    events = await desk.events(run_id)
    return [e.warning_raised.message for e in events if e.kind == "warning_raised"]


async def test_a_file_and_a_text_are_kept_and_what_leads_out_is_not(
    daemon: Daemon, desk: Desk
) -> None:
    (desk.root / "plot.png").write_bytes(b"\x89PNG\0")
    (desk.root / "link").symlink_to("/etc/hostname")
    (desk.root / "folder").symlink_to("/etc")
    led = ("file link link", "file folder folder/hostname", "file up ../up")
    steps = ("file plot plot.png", *led, "notes 1 3", "result ok")
    run_id = await desk.submit(worker("a", *steps))
    assert (await desk.ended(run_id)).status == RUN_STATUS_COMPLETED
    plot, note = await kept(desk, run_id)
    (desk.root / "plot.png").unlink()
    assert (plot.name, plot.kind, plot.source_path) == ("plot", ARTIFACT_KIND_REPORT, "plot.png")
    assert (plot.task_id, plot.attempt, plot.size_bytes) == ("a", 1, 5)
    assert plot.media_type == "application/octet-stream"
    assert (note.name, note.kind, note.source_path) == ("note-1", ARTIFACT_KIND_FILE, "")
    assert await read(desk, plot.id) == b"\x89PNG\0"
    assert await read(desk, note.id) == b"111"
    link, folder, up = await warnings(desk, run_id)
    assert "link is a symbolic link" in link
    assert "folder/hostname has a part that is no directory, or a symbolic link" in folder
    assert "`..`" in up
    code, out, _ = await daemon.crew("artifacts", run_id, "note-1")
    assert (code, out) == (0, "111")


@pytest.mark.parametrize("name", ["", "findings.md"])
async def test_a_long_result_is_whole_in_an_artifact(desk: Desk, name: str) -> None:
    task = worker("a", "long 100000")
    task.output.name = name
    run_id = await desk.submit(task)
    run = await desk.ended(run_id)
    (artifact,) = await kept(desk, run_id)
    task_result = (await desk.task(run_id, "a")).result
    assert (artifact.name, artifact.kind) == (name or "result.txt", ARTIFACT_KIND_RESULT)
    assert await read(desk, artifact.id) == b"r" * 100_000
    for result in (task_result, run.result):
        assert (result.artifact_id, result.truncated) == (artifact.id, True)
        assert len(result.text) == 65_536


async def test_a_named_result_is_there_when_the_run_ends(desk: Desk) -> None:
    task = shell("a", "echo the answer")
    task.output.name = "answer.txt"
    run_id = await desk.submit(task, shell("b", "true"))
    run = await desk.ended(run_id)
    (artifact,) = await kept(desk, run_id)
    assert (artifact.name, artifact.kind) == ("answer.txt", ARTIFACT_KIND_RESULT)
    assert await read(desk, artifact.id) == b"the answer\n"
    assert (await desk.task(run_id, "a")).result.artifact_id == artifact.id
    kinds = [event.kind for event in await desk.events(run_id)]
    assert kinds.index("artifact_recorded") < kinds.index("run_finished") == len(kinds) - 1
    assert run.status == RUN_STATUS_COMPLETED


async def test_a_daemon_killed_again_and_again_keeps_each_once_and_whole(
    daemon: Daemon, desk: Desk
) -> None:
    note, last = 60_000, desk.root / "go"
    steps = (f"notes 40 {note}", f"wait {last}", f"notes 3 {note}", "long 100000")
    run_id = await desk.submit(worker("a", *steps))
    for number in range(1, 5):
        await eventually(partial(_keeps, daemon, run_id, number), "one is kept")
        await daemon.restart()
    last.touch()
    await desk.ended(run_id)
    found = await kept(desk, run_id)
    names = [*range(1, 41), 1, 2, 3]
    assert [a.name for a in found] == [*(f"note-{name}" for name in names), "result.txt"]
    for artifact, number in zip(found, names, strict=False):
        assert await read(desk, artifact.id) == str(number % 10).encode() * note
    assert await read(desk, found[-1].id) == b"r" * 100_000
    folder = daemon.state_dir / "artifacts" / run_id
    assert {path.name for path in folder.iterdir()} == {a.sha256 for a in found}


def _files(daemon: Daemon, run_id: str) -> int:
    folder = daemon.state_dir / "artifacts" / run_id
    return len(list(folder.iterdir())) if folder.exists() else 0


def _keeps(daemon: Daemon, run_id: str, count: int) -> bool:
    return _files(daemon, run_id) >= count


async def test_a_named_result_survives_a_kill_at_any_moment(daemon: Daemon, desk: Desk) -> None:
    tasks = [shell(f"t{number}", f"echo {number}") for number in range(12)]
    for task in tasks:
        task.output.name = f"{task.id}.txt"
    run_id = await desk.submit(*tasks)
    for number in (1, 4, 8):
        await eventually(partial(_keeps, daemon, run_id, number), "some are kept")
        await daemon.restart()
    assert (await desk.ended(run_id)).status == RUN_STATUS_COMPLETED
    found = {a.name: a async for a in list_artifacts(desk.client, run_id)}
    assert sorted(found) == sorted(task.output.name for task in tasks)
    for number in range(12):
        assert await read(desk, found[f"t{number}.txt"].id) == f"{number}\n".encode()


async def test_a_deleted_run_takes_its_artifacts_along(daemon: Daemon, desk: Desk) -> None:
    run_id = await desk.submit(worker("a", "notes 2 1000", "result ok"))
    await desk.ended(run_id)
    first, _ = await kept(desk, run_id)
    folder = daemon.state_dir / "artifacts" / run_id
    assert (folder / first.sha256).read_bytes() == b"1" * 1000
    assert first.sha256 == sha256(b"1" * 1000).hexdigest()
    deleted = await desk.client.runs.DeleteRun(DeleteRunRequest(run_id=run_id))
    assert deleted.freed_bytes >= 2000
    assert not folder.exists()
    with pytest.raises(NotFoundError):
        await read(desk, first.id)


async def test_a_start_clears_what_a_killed_daemon_left(daemon: Daemon, desk: Desk) -> None:
    run_id = await desk.submit(worker("a", "notes 1 3", "result ok"))
    await desk.ended(run_id)
    folder = daemon.state_dir / "artifacts"
    (folder / run_id / ".draft-0000-1").write_text("half")
    (folder / "run_deleted").mkdir()
    (folder / "run_deleted" / ("0" * 64)).write_text("left")
    await daemon.restart()
    await eventually(lambda: not (folder / "run_deleted").exists(), "it is deleted")
    await eventually(lambda: _files(daemon, run_id) == 1, "the draft is deleted")
    await asyncio.gather(*(read(desk, artifact.id) for artifact in await kept(desk, run_id)))
