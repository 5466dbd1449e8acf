"""A daemon with a past and nothing to do: what it and its host use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from tests.bench.drive import Processes
from tests.bench.pages import finished_runs
from tests.bench.place import a_daemon
from tests.bench.rows import MEBIBYTES, PERCENT, Row, at_most, told
from tests.bench.scale import Scale
from tests.bench.usage import resident_mib, shared_out_mib, threads_cpu_ms


async def measure(scale: Scale) -> AsyncIterator[Row]:
    database, runs = await finished_runs(scale)
    seconds = scale.pick(10, 3)
    async with a_daemon(scale.folder, database=Path(database)) as desk:
        processes = await Processes.of(desk)
        await desk.client.close()
        await asyncio.sleep(scale.pick(5, 1))
        pids = processes.daemon, processes.host
        before = [threads_cpu_ms(pid) for pid in pids]
        await asyncio.sleep(seconds)
        used = [threads_cpu_ms(pid) - at for pid, at in zip(pids, before, strict=True)]
        memory = [resident_mib(pid) for pid in pids]
        shared_out = [shared_out_mib(pid) for pid in pids]
    percents = [ms / 10 / seconds for ms in used]
    named = f"idle with {runs} finished runs"
    yield at_most(f"{named}: daemon, of a core over {seconds} s", percents[0], PERCENT, 0.1)
    yield told(f"{named}: host, of a core", percents[1], PERCENT)
    yield at_most(f"{named}: daemon and host, resident", sum(memory), MEBIBYTES, 90)
    yield told("daemon, resident", memory[0], MEBIBYTES)
    yield told("host, resident", memory[1], MEBIBYTES)
    yield told("daemon and host, proportional (PSS)", sum(shared_out), MEBIBYTES)
