"""Agents of one kind, one after the other, in one process of the real pi."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crewd_client.v1.run_pb2 import RUN_STATUS_COMPLETED
from crewd_client.v1.spec_pb2 import RunLimits, TaskSpec
from crewd_client.v1.task_pb2 import Task
from tests.support.daemon import Daemon
from tests.support.desk import Desk, retries
from tests.support.pi import BIN, MODEL, configure
from tests.support.pi_desk import needs_pi
from tests.support.scripted_model import ScriptedModel

pytestmark = needs_pi

CREW = Path(sys.executable).parent
WHO = "[[tool:echo I am $CREWD_TASK_ID]]"
ASKS = "[[tool:crew ask Which --option left --text]]"


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel().serving() as model:
        yield model


async def submitted(desk: Desk, model: ScriptedModel, *prompts: str) -> str:
    tasks = [
        TaskSpec(id=f"t{n}", adapter="pi", command=["pi"], prompt=prompt, model=MODEL)
        for n, prompt in enumerate(prompts)
    ]
    for task in tasks:
        task.env.update(configure(desk.root / "pi", model.base_url))
    request = desk.request(*tasks, limits=RunLimits(max_concurrent_workers=1), retry=retries(1))
    request.env.path = f"{BIN}:{CREW}:/usr/bin:/bin"
    return (await desk.client.runs.CreateRun(request)).run.id


async def ended(desk: Desk, run_id: str, count: int) -> list[Task]:
    run = await desk.ended(run_id)
    assert run.status == RUN_STATUS_COMPLETED, run.error.message
    return [await desk.task(run_id, f"t{n}") for n in range(count)]


async def test_tasks_of_one_kind_share_a_process_and_know_who_they_are(
    desk: Desk, model: ScriptedModel
) -> None:
    tasks = await ended(desk, await submitted(desk, model, WHO, WHO, WHO), 3)

    assert len({task.attempts[0].pid for task in tasks}) == 1
    for task in tasks:
        assert f"I am {task.id}" in task.result.text
    # Each session began anew: nobody heard what another was told.
    heard = [len(request["messages"]) for request in model.requests]
    assert heard == [heard[0], heard[0] + 2] * 3


async def test_a_process_with_something_left_behind_is_not_handed_on(
    desk: Desk, model: ScriptedModel
) -> None:
    left = "[[tool:sleep 300 >/dev/null 2>&1 & echo left]]"
    tasks = await ended(desk, await submitted(desk, model, left, WHO), 2)

    assert len({task.attempts[0].pid for task in tasks}) == 2
    assert "I am t1" in tasks[1].result.text


async def test_a_shell_in_a_process_that_was_handed_on_asks_for_its_own_task(
    desk: Desk, model: ScriptedModel
) -> None:
    run_id = await submitted(desk, model, WHO, ASKS)
    ask = await desk.asked(run_id)
    await desk.answer(ask.id, "left")
    tasks = await ended(desk, run_id, 2)

    assert ask.task_id == "t1"
    assert "left" in tasks[1].result.text
    assert len({task.attempts[0].pid for task in tasks}) == 1


async def test_a_daemon_that_is_killed_between_two_of_them_loses_neither(
    daemon: Daemon, desk: Desk, model: ScriptedModel
) -> None:
    slow = "[[tool:sleep 0.3; echo I am $CREWD_TASK_ID]]"
    run_id = await submitted(desk, model, *[slow] * 4)
    for n in range(3):
        await desk.happened(run_id, "attempt_ended", task_id=f"t{n}")
        await daemon.restart()
    tasks = await ended(desk, run_id, 4)

    assert [task.attempt for task in tasks] == [1] * 4
    for task in tasks:
        assert f"I am {task.id}" in task.result.text
