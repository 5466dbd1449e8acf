"""From CreateRun to the first byte of its first worker, against a bare spawn."""

from __future__ import annotations

import asyncio
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator

from crewd_client import read_output, watch_run
from crewd_client.v1.run_stream_pb2 import OutputStream, ReadOutputRequest
from crewd_client.v1.spec_pb2 import TaskSpec
from tests.bench.place import a_daemon
from tests.bench.rows import MILLISECONDS, TIMES, Row, at_most, middle, told
from tests.bench.scale import Scale
from tests.support.desk import Desk

# Prints when it prints, in nanoseconds, so that the time does not depend on who reads it.
DATE = ("/usr/bin/date", "+%s%N")
_SECONDS = 60.0


async def measure(scale: Scale) -> AsyncIterator[Row]:
    bare: list[float] = []
    written: list[float] = []
    read: list[float] = []
    async with a_daemon(scale.folder) as desk:
        for n in range(scale.pick(110, 15)):
            async with asyncio.timeout(_SECONDS):
                spawned, (wrote, seen) = await _bare(), await _ours(desk)
            if n >= scale.pick(10, 5):
                bare.append(spawned)
                written.append(wrote)
                read.append(seen)
    yield at_most(
        "CreateRun to its first worker's first byte, p50, in bare spawns",
        middle(written) / middle(bare),
        TIMES,
        10,
    )
    yield told("CreateRun to its first worker's first byte, p50", middle(written), MILLISECONDS)
    yield told("until a client that follows the output has it, p50", middle(read), MILLISECONDS)
    yield told("bare spawn to the first byte read, p50", middle(bare), MILLISECONDS)


async def _bare() -> float:
    start = time.perf_counter()
    process = await asyncio.create_subprocess_exec(*DATE, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
    assert process.stdout is not None
    await process.stdout.read(1)
    taken = time.perf_counter() - start
    await process.communicate()
    return 1000 * taken


async def _ours(desk: Desk) -> tuple[float, float]:
    """Return the milliseconds until the worker writes, and until a client has read it."""
    request = desk.request(TaskSpec(id="t", command=DATE))
    start = time.time_ns()
    run_id = (await desk.client.runs.CreateRun(request)).run.id
    stdout = OutputStream.OUTPUT_STREAM_STDOUT
    wanted = ReadOutputRequest(run_id=run_id, task_id="t", stream=stdout, follow=True)
    printed, seen = b"", 0
    async for part in read_output(desk.client, wanted):
        seen = seen or (time.time_ns() if part.data else 0)
        printed += part.data
    async for _ in watch_run(desk.client, run_id):
        pass
    return (int(printed) - start) / 1e6, (seen - start) / 1e6
