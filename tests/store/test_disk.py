from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from crewd.core.changes import Changes
from crewd.store import AppendFailed, EventQuery
from tests.store.samples import Store, a_run, entries

MIB = 1024 * 1024
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("mount") is None,
    reason="a small disk of its own takes root",
)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    subprocess.run(mount, check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path, leave: int = 0) -> Path:
    """Take up all space but so much; remove the file to give it back."""
    ballast = folder / "ballast"
    disk = os.statvfs(folder)
    with ballast.open("wb") as file:
        file.write(bytes(disk.f_bavail * disk.f_frsize - leave))
    return ballast


async def state(store: Store) -> str:
    async with asyncio.timeout(10):
        return await store.states.get()


async def test_a_full_disk_pauses_and_nothing_is_lost(small_disk: Path) -> None:
    async with Store(small_disk / "crewd.db") as store:
        await store.add(a_run())
        ballast = fill(small_disk)
        futures = [
            store.log.append("run_a", entries(store.log, 10, data=bytes(1000)), Changes())
            for _ in range(20)
        ]
        assert await state(store) == "disk_full"
        assert store.log.paused == "disk_full"
        assert not store.log.can_admit()
        assert store.published == [1]

        ballast.unlink()
        assert await state(store) == ""
        await asyncio.gather(*futures)
        assert store.log.can_admit()
        assert store.published == list(range(1, 202))
        page = await store.reads.list_events(EventQuery(run_id="run_a"))
        assert [entry.sequence for entry in page.entries] == store.published


async def test_a_disk_that_is_low_pauses_before_it_is_full(small_disk: Path) -> None:
    async with Store(small_disk / "crewd.db", reserve=2 * MIB) as store:
        await store.add(a_run())
        ballast = fill(small_disk, leave=MIB)
        assert not store.log.can_admit()
        future = store.log.append("run_a", entries(store.log), Changes())
        assert await state(store) == "disk_low"
        assert not future.done()

        ballast.unlink()
        await future
        assert await state(store) == ""


async def test_reads_go_on_while_the_disk_is_full(small_disk: Path) -> None:
    async with Store(small_disk / "crewd.db") as store:
        await store.add(a_run())
        fill(small_disk)
        future = store.log.append("run_a", entries(store.log, data=bytes(MIB)), Changes())
        assert await state(store) == "disk_full"

        assert await store.reads.get_run("run_a") == a_run()
        await store.log.close()
        with pytest.raises(AppendFailed, match="closed while disk_full"):
            await future


async def test_the_store_opens_again_after_a_full_disk(small_disk: Path) -> None:
    path = small_disk / "crewd.db"
    async with Store(path) as store:
        await store.add(a_run())
        ballast = fill(small_disk)
        future = store.log.append("run_a", entries(store.log, data=bytes(MIB)), Changes())
        assert await state(store) == "disk_full"
        await store.log.close()
        assert isinstance(future.exception(), AppendFailed)
    ballast.unlink()

    async with Store(path) as store:
        assert await store.reads.last_sequence("run_a") == 1
        await store.log.append("run_a", entries(store.log), Changes())
        assert store.published == [2]
