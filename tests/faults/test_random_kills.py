"""kill -9 of daemon and host at random points of one run."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from crewd_client.v1.ask_pb2 import ASK_STATUS_ANSWERED
from crewd_client.v1.event_pb2 import Event
from crewd_client.v1.run_pb2 import RUN_STATUS_COMPLETED
from crewd_client.v1.spec_pb2 import RunLimits, TaskSpec
from tests.support.daemon import Daemon
from tests.support.desk import Desk, plain, retries, worker
from tests.support.replay import expect_rows_as_told
from tests.support.unrest import Misfortune, answer_everything, unsteady_watch

SEED = 20240229
TASKS = 30
KILLS = 100


def chance() -> Random:
    return Random(SEED)  # noqa: S311 - the same misfortune every time


def tasks(root: Path) -> list[TaskSpec]:
    """Describe tasks that need some others, each of which ends once its gate is open."""
    made: list[TaskSpec] = []
    for number in range(TASKS):
        gate = f"wait {root / f'gate{number}'}"
        needs = [f"t{other}" for other in (number - 9, number - 7) if other >= 0]
        make, steps = [
            (plain, ("lines 5 0.01", gate, "lines 5 0")),
            (worker, ("hello", "usage 1", gate, "result ok")),
            (worker, ("hello", f"ask q{number}", gate, f"ask r{number}", "result ok")),
        ][number % 3]
        made.append(make(f"t{number}", *steps, depends_on=needs))
    return made


@pytest.mark.timeout(400)
async def test_a_run_survives_a_hundred_kills(daemon: Daemon, desk: Desk) -> None:
    run_id = await desk.submit(
        *tasks(desk.root), retry=retries(1000), limits=RunLimits(max_concurrent_workers=6)
    )
    misfortune = Misfortune(daemon, chance())
    watching = asyncio.create_task(unsteady_watch(desk, run_id, chance()))
    answering = asyncio.create_task(answer_everything(desk, run_id))
    while sum(misfortune.kills.values()) < KILLS:
        await misfortune.strike()
        for number in range(sum(misfortune.kills.values()) * TASKS // KILLS):
            (desk.root / f"gate{number}").touch()
    await daemon.serves()
    events = await watching
    answering.cancel()
    await asyncio.wait([answering])
    assert [event.run_sequence for event in events] == list(range(1, len(events) + 1))
    assert (await desk.run(run_id)).status == RUN_STATUS_COMPLETED
    assert events == await desk.events(run_id)
    expect_each_question_once(desk, events)
    assert desk.never_twice()
    assert daemon.marked() == []
    await expect_rows_as_told(desk, run_id)


def expect_each_question_once(desk: Desk, events: list[Event]) -> None:
    opened = Counter(e.ask_opened.ask.question for e in events if e.kind == "ask_opened")
    asking = range(2, TASKS, 3)
    assert opened == Counter(f"{ref}{number}?" for number in asking for ref in "qr")
    settled = [e.ask_settled for e in events if e.kind == "ask_settled"]
    assert {s.outcome for s in settled} == {ASK_STATUS_ANSWERED}
    assert len({s.ask_id for s in settled}) == len(settled) == sum(opened.values())
    for number in asking:
        # Of each attempt's worker, since a later one is told again what was answered.
        heard = Counter(
            (line[0], line[3]) for line in desk.booked(f"t{number}") if "answer" in line
        )
        assert set(heard.values()) == {1}
