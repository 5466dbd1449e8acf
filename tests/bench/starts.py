"""Starts: of a daemon with a past, of `crew ls`, and of a Python that imports grpc."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from tests.bench import serving
from tests.bench.pages import finished_runs
from tests.bench.place import a_stopped_daemon
from tests.bench.rows import SECONDS, Row, at_most, middle, told
from tests.bench.scale import Scale
from tests.support.daemon import Daemon

_BIN = Path(sys.executable).parent


async def measure(scale: Scale) -> AsyncIterator[Row]:
    database, runs = await finished_runs(scale)
    starts: list[float] = []
    lists: list[float] = []
    imports: list[float] = []
    python = Path(sys.executable).name
    for _ in range(scale.pick(7, 3)):
        async with a_stopped_daemon(scale.folder, database=Path(database)) as daemon:
            starts.append(await serving.start(daemon))
            await daemon.host()
            for _ in range(2):
                lists.append(await _timed(daemon, "crew", ("ls",)))
                imports.append(await _timed(daemon, python, ("-c", "import grpc")))
    yield at_most(f"start to READY with {runs} finished runs", middle(starts), SECONDS, 0.6)
    yield at_most("crew ls", middle(lists), SECONDS, 0.3)
    yield told('python -c "import grpc"', middle(imports), SECONDS)


async def _timed(daemon: Daemon, program: str, arguments: Sequence[str]) -> float:
    start = time.perf_counter()
    code, _, err = await daemon.crew(*arguments, program=program)
    taken = time.perf_counter() - start
    assert code == 0, err
    return taken
