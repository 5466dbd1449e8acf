"""A question's way: the worker asks, a watching client sees and answers, the worker goes on.

Both ends of the time are taken by the worker.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from crewd_client import watch_run
from crewd_client.v1.run_service_pb2 import CancelRunRequest
from crewd_client.v1.spec_pb2 import RunLimits, TaskSpec
from tests.bench.drive import AT_ONCE, independent
from tests.bench.place import a_daemon
from tests.bench.rows import MILLISECONDS, Row, at_most, middle, tenth_worst, told
from tests.bench.scale import Scale
from tests.support.desk import Desk

_ASKING = Path(__file__).with_name("asking.py")
_PAUSE = 0.02
_SECONDS = 120.0


async def measure(scale: Scale) -> AsyncIterator[Row]:
    count = scale.pick(100, 20)
    # One slot more than the crowd takes, or the worker that asks would wait to begin.
    async with a_daemon(scale.folder, "--max-workers", str(AT_ONCE + 1)) as desk:
        await _ask(desk, 10)
        idle = await _ask(desk, count)
        crowd = await desk.submit(
            *independent(10_000), limits=RunLimits(max_concurrent_workers=AT_ONCE)
        )
        loaded = await _ask(desk, count)
        await desk.client.runs.CancelRun(CancelRunRequest(run_id=crowd))
        await desk.ended(crowd)
    yield at_most("ask, seen, answered, worker goes on: idle, p50", middle(idle), MILLISECONDS, 10)
    yield told("the same, p90", tenth_worst(idle), MILLISECONDS)
    yield told(f"beside a full run of true, {AT_ONCE} wide, p50", middle(loaded), MILLISECONDS)
    yield told("the same, p90", tenth_worst(loaded), MILLISECONDS)


async def _ask(desk: Desk, count: int) -> list[float]:
    file = desk.root / "taken.json"
    command = [sys.executable, "-I", "-S", str(_ASKING), str(count), str(_PAUSE), str(file)]
    run_id = await desk.submit(TaskSpec(id="asks", adapter="jsonl", command=command))
    async with asyncio.timeout(_SECONDS):
        async for event in watch_run(desk.client, run_id):
            if event.kind == "ask_opened":
                await desk.answer(event.ask_opened.ask.id, "yes")
    taken: list[float] = json.loads(file.read_text())
    assert len(taken) == count
    return taken
