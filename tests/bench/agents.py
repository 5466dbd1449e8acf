"""What it is worth that an agent's process goes on with the next task of its kind.

Both runs are of the same tasks, which only say a word; in one of them each task has a variable of
its own, so that each needs a process of its own.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

from crewd_client.v1.run_pb2 import RUN_STATUS_COMPLETED
from crewd_client.v1.spec_pb2 import RunLimits, TaskSpec
from tests.bench.place import a_daemon
from tests.bench.rows import SECONDS, TIMES, Row, at_least, middle, not_measured, told
from tests.bench.scale import Scale
from tests.support.desk import Desk
from tests.support.pi import BIN, MISSING, MODEL, configure
from tests.support.scripted_model import ScriptedModel

WORKERS = 2
_MEASURE = "20 tasks of one agent, 2 at a time: a process each, against one handed on"


async def measure(scale: Scale) -> AsyncIterator[Row]:
    if MISSING:
        yield not_measured(_MEASURE, MISSING)
        return
    count, rounds = scale.pick(20, 6), scale.pick(3, 1)
    apart: list[float] = []
    together: list[float] = []
    with ScriptedModel().serving() as model:
        async with a_daemon(scale.folder) as desk:
            await _run(desk, model, 2, apart=True)
            for _ in range(rounds):
                apart.append(await _run(desk, model, count, apart=True))
                together.append(await _run(desk, model, count, apart=False))
    ratio = middle([a / t for a, t in zip(apart, together, strict=True)])
    yield at_least(_MEASURE, ratio, TIMES, 2)
    yield told("the same, a process each", middle(apart), SECONDS)
    yield told("the same, handed on", middle(together), SECONDS)


async def _run(desk: Desk, model: ScriptedModel, count: int, *, apart: bool) -> float:
    variables = configure(desk.root / "pi", model.base_url)
    tasks = [
        TaskSpec(
            id=f"t{n}",
            adapter="pi",
            command=["pi"],
            prompt="Say it. [[plain:word]]",
            model=MODEL,
            env={**variables, "NUMBER": str(n)} if apart else variables,
        )
        for n in range(count)
    ]
    request = desk.request(*tasks, limits=RunLimits(max_concurrent_workers=WORKERS))
    request.env.path = f"{BIN}:/usr/bin:/bin"
    begin = time.monotonic()
    run_id = (await desk.client.runs.CreateRun(request)).run.id
    run = await desk.ended(run_id)
    assert run.status == RUN_STATUS_COMPLETED, run.error.message
    return time.monotonic() - begin
