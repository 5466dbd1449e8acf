"""Where the bench keeps its things: a folder of its own on the disk of the checkout."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from crewd_client.v1.server_pb2 import HOST_STATUS_READY
from tests.support.daemon import Daemon, eventually
from tests.support.desk import Desk

ROOT = Path(__file__).parents[2]
_MEMORY = {"tmpfs", "ramfs"}


class Disk(NamedTuple):
    kind: str
    source: str


@contextmanager
def a_folder() -> Generator[Path]:
    """Give a new folder; the usual place for such things is used if it is on the same disk."""
    usual = Path(tempfile.gettempdir())
    same = usual.stat().st_dev == ROOT.stat().st_dev and disk_of(usual).kind not in _MEMORY
    parent = usual if same else ROOT / "build"
    parent.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="cb-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def disk_of(folder: Path) -> Disk:
    """Tell what the folder lies on."""
    device = folder.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, what = line.partition(" - ")
        if mount.split()[2] == wanted:
            kind, source = what.split()[:2]
            return Disk(kind, source)
    return Disk("unknown", wanted)


@asynccontextmanager
async def a_daemon(
    folder: Path, *options: str, database: Path | None = None
) -> AsyncGenerator[Desk]:
    """Give a client at its desk, with a daemon that has its host, on a copy of the database."""
    async with a_stopped_daemon(folder, *options, database=database) as daemon:
        await daemon.start()
        desk = await daemon.desk()
        await eventually(partial(_has_host, desk), "the daemon has its host")
        yield desk


async def _has_host(desk: Desk) -> bool:
    return (await desk.server()).host.status == HOST_STATUS_READY


@asynccontextmanager
async def a_stopped_daemon(
    folder: Path, *options: str, database: Path | None = None
) -> AsyncGenerator[Daemon]:
    """Give a daemon that is not started yet, and clear away all of it in the end."""
    root = Path(tempfile.mkdtemp(prefix="d-", dir=folder))
    daemon = Daemon(root, options=options)
    if database is not None:
        daemon.state_dir.mkdir(mode=0o700)
        shutil.copyfile(database, daemon.state_dir / "crewd.db")
    try:
        yield daemon
    finally:
        await daemon.end()
        shutil.rmtree(root)
