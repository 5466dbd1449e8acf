from __future__ import annotations

from dataclasses import replace

import pytest

from crewd.core.errors import CrewdError, Reason
from crewd.core.events import RunCreated, RunFinished, TasksAdded
from crewd.core.graph import check
from crewd.core.model import Failure, Run, Task
from crewd.core.spec import RunSpec
from crewd.core.words import RunStatus, TaskStatus
from tests.support.builders import (
    OPERATOR,
    RUN_ID,
    START,
    a_create,
    a_spec,
    a_task,
    an_empty_state,
    host_ready,
)
from tests.support.play import Play, Told
from tests.support.waves import waves


def created(spec: RunSpec) -> RunCreated:
    return RunCreated(
        run=Run(
            id=RUN_ID,
            spec=replace(spec, tasks=()),
            title="Measure",
            created_by="ann",
            request_id="request_1",
            create_time=START,
            update_time=START,
        )
    )


def test_a_run_is_created_with_its_tasks_in_file_order() -> None:
    spec = a_spec(a_task("b"), a_task("a", "b"))
    play = Play(an_empty_state())

    told = play.tell(a_create(spec))

    rows = tuple(
        Task(
            run_id=RUN_ID,
            id=task.id,
            position=position,
            spec=task,
            create_time=START,
            update_time=START,
        )
        for position, task in enumerate(spec.tasks)
    )
    assert told == Told((created(spec), TasksAdded(rows)))
    assert [(r.actor, r.run_sequence, r.run_status) for r in play.log] == [
        (OPERATOR, 1, RunStatus.QUEUED),
        (OPERATOR, 2, None),
    ]


def test_tasks_are_told_in_parts() -> None:
    tasks = [a_task(f"t{n:03}") for n in range(120)]

    events = Play(an_empty_state()).tell(a_create(a_spec(*tasks))).events

    parts = [event.tasks for event in events if isinstance(event, TasksAdded)]
    assert [len(part) for part in parts] == [50, 50, 20]
    assert [task.spec for part in parts for task in part] == tasks


def test_what_was_told_stays_as_it_was_when_the_rows_change() -> None:
    play = Play(an_empty_state())
    told = play.tell(a_create(a_spec(a_task("a")))).events

    play.tell(host_ready())
    play.start("a")

    assert isinstance(told[0], RunCreated)
    assert isinstance(told[1], TasksAdded)
    assert told[0].run.status is RunStatus.QUEUED
    assert told[1].tasks[0].status is TaskStatus.QUEUED


def test_a_host_that_answers_before_the_run_is_created_ends_nothing() -> None:
    play = Play(an_empty_state())

    assert play.tell(host_ready()) == Told()

    play.tell(a_create(a_spec(a_task("a"))))
    assert play.run_status() is RunStatus.QUEUED
    assert play.state.wanted_slots() == 1


def test_a_run_without_tasks_fails_at_once() -> None:
    spec = a_spec()

    told = Play(an_empty_state()).tell(a_create(spec))

    message = "no task completed"
    finished = RunFinished(
        status=RunStatus.FAILED,
        reason="nothing_completed",
        message=message,
        error=Failure(reason="nothing_completed", message=message),
    )
    assert told == Told((created(spec), finished))


def test_a_cycle_is_refused_with_its_path() -> None:
    tasks = [a_task("a", "c"), a_task("b", "a"), a_task("c", "b"), a_task("d")]

    with pytest.raises(CrewdError) as refused:
        check(tasks)

    assert refused.value.reason is Reason.GRAPH_CYCLE
    assert refused.value.metadata == {"path": "a -> c -> b -> a"}


def test_a_task_that_needs_itself_is_a_cycle() -> None:
    with pytest.raises(CrewdError) as refused:
        check([a_task("a", "a")])

    assert refused.value.metadata == {"path": "a -> a"}


def test_every_unknown_dependency_is_named_with_its_place() -> None:
    with pytest.raises(CrewdError) as refused:
        check([a_task("a"), a_task("b", "x"), a_task("c", "y")])

    assert refused.value.reason is Reason.GRAPH_UNKNOWN_TASK
    assert [v.field for v in refused.value.violations] == [
        "tasks[1].depends_on",
        "tasks[2].depends_on",
    ]


def test_a_long_chain_is_checked_without_recursion() -> None:
    chain = [a_task("t0"), *(a_task(f"t{n}", f"t{n - 1}") for n in range(1, 5000))]

    check(chain)

    assert len(waves({task.id: task.depends_on for task in chain})) == 5000
