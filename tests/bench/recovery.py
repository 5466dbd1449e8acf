"""kill -9 with a thousand open runs: how long until the next daemon serves."""

from __future__ import annotations

from collections.abc import AsyncIterator

from tests.bench import serving
from tests.bench.history import TASKS_A_RUN, store_open
from tests.bench.place import a_stopped_daemon
from tests.bench.rows import SECONDS, Row, at_most, middle, told
from tests.bench.scale import Scale


async def measure(scale: Scale) -> AsyncIterator[Row]:
    runs = scale.pick(1000, 100)
    database = scale.folder / "open.db"
    await store_open(database, runs)
    taken: list[float] = []
    async with a_stopped_daemon(scale.folder, database=database) as daemon:
        first = await serving.start(daemon)
        for _ in range(scale.pick(5, 2)):
            await daemon.host()
            daemon.kill()
            taken.append(await serving.start(daemon))
    named = f"kill -9 with {runs} open runs, {runs * TASKS_A_RUN} tasks, to serving again"
    yield at_most(named, middle(taken), SECONDS, 2)
    yield told("the same, without a host to find", first, SECONDS)
