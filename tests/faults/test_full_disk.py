"""The state directory is on a disk that fills up."""

from __future__ import annotations

import os
import subprocess
import warnings
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crewd_client import CrewdError, list_artifacts
from crewd_client.v1.run_pb2 import RUN_STATUS_COMPLETED
from tests.support.daemon import Daemon, eventually
from tests.support.desk import Desk, plain, shell, worker
from tests.support.places import a_place

DISK = "64m"
LINES = b"".join(b"line %d\n" % number for number in range(1, 2001))


@contextmanager
def a_small_disk(root: Path) -> Generator[Path]:
    place = root / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=700", "tmpfs", str(place)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        warnings.warn(f"a full disk was NOT tried: {mounted.stderr}", stacklevel=1)
        pytest.skip("only root can mount a small disk")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.fixture
async def daemon() -> AsyncIterator[Daemon]:
    with a_place() as root, a_small_disk(root):
        daemon = Daemon(root, name="disk/s")
        await daemon.start()
        try:
            yield daemon
        finally:
            await daemon.end()


def fill(path: Path) -> None:
    """Take all the room there is, to the last byte."""
    with path.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    os.write(file.fileno(), b"\0" * size)
            except OSError:
                continue


async def test_a_full_disk_is_said_and_nothing_is_lost_by_it(desk: Desk) -> None:
    go = desk.root / "go"
    run_id = await desk.submit(
        plain("prints", f"wait {go}", "lines 2000 0"),
        worker("asks", "usage 7", "ask q", f"wait {go}", "result ok"),
    )
    ask = await desk.asked(run_id)
    await desk.happened(run_id, "attempt_started", "prints")
    ballast = desk.root / "disk" / "ballast"
    fill(ballast)
    assert await refusal(desk) == "DISK_LOW"
    go.touch()
    assert (await desk.run(run_id)).open_ask_count == 1
    ballast.unlink()
    await eventually(lambda: taken(desk), "runs are taken again")
    await desk.answer(ask.id, "yes")
    run = await desk.ended(run_id)
    assert (run.status, run.usage.input_tokens) == (RUN_STATUS_COMPLETED, 7)
    assert await desk.output(run_id, "prints") == LINES
    assert desk.heard("asks", "answer") == ["q"]


async def test_what_is_handed_in_on_a_full_disk_is_kept_once_there_is_room(desk: Desk) -> None:
    go, ballast = desk.root / "go", desk.root / "disk" / "ballast"
    task = worker("gives", f"wait {go}", "notes 2 100000", "result ok")
    task.output.name = "answer.txt"
    run_id = await desk.submit(task)
    await desk.happened(run_id, "attempt_started", "gives")
    fill(ballast)
    go.touch()
    assert await refusal(desk) == "DISK_LOW"
    assert [artifact async for artifact in list_artifacts(desk.client, run_id)] == []
    ballast.unlink()
    assert (await desk.ended(run_id)).status == RUN_STATUS_COMPLETED
    found = [artifact async for artifact in list_artifacts(desk.client, run_id)]
    assert [artifact.name for artifact in found] == ["note-1", "note-2", "answer.txt"]
    assert [artifact.size_bytes for artifact in found] == [100_000, 100_000, 2]
    folder = desk.root / "disk" / "s" / "artifacts" / run_id
    assert {path.name for path in folder.iterdir()} == {artifact.sha256 for artifact in found}


async def refusal(desk: Desk) -> str:
    """Try to start another run; return why it is not taken."""
    try:
        await desk.submit(shell("late", "true"))
    except CrewdError as error:
        return error.reason
    return ""


async def taken(desk: Desk) -> bool:
    return not await refusal(desk)
