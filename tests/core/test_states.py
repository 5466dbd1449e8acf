from __future__ import annotations

from itertools import product

import pytest

from crewd.core.apply import apply
from crewd.core.events import RunFinished, TaskFinished
from crewd.core.states import (
    RUN_MOVES,
    RUN_TERMINAL,
    TASK_MOVES,
    TASK_TERMINAL,
    IllegalMoveError,
    check_run_move,
    check_task_move,
)
from crewd.core.words import RunStatus, TaskStatus
from tests.support.builders import START, a_spec, a_state, a_task


def test_both_tables_are_total() -> None:
    assert set(RUN_MOVES) == set(RunStatus)
    assert set(TASK_MOVES) == set(TaskStatus)


@pytest.mark.parametrize(("old", "new"), [*product(RunStatus, RunStatus)])
def test_a_run_moves_only_as_the_table_says(old: RunStatus, new: RunStatus) -> None:
    if new in RUN_MOVES[old]:
        check_run_move("run_1", old, new)
    else:
        with pytest.raises(IllegalMoveError, match=f"run run_1 may not go from {old} to {new}"):
            check_run_move("run_1", old, new)


@pytest.mark.parametrize(("old", "new"), [*product(TaskStatus, TaskStatus)])
def test_a_task_moves_only_as_the_table_says(old: TaskStatus, new: TaskStatus) -> None:
    if new in TASK_MOVES[old]:
        check_task_move("a", old, new)
    else:
        with pytest.raises(IllegalMoveError, match=f"task a may not go from {old} to {new}"):
            check_task_move("a", old, new)


def test_a_finished_run_is_left_only_by_running_again() -> None:
    assert all(RUN_MOVES[status] == {RunStatus.RUNNING} for status in RUN_TERMINAL)


def test_a_completed_task_stays_completed() -> None:
    assert TASK_MOVES[TaskStatus.COMPLETED] == set()


def test_a_task_that_has_ended_is_left_for_the_queue_or_for_what_a_person_says() -> None:
    settled = {TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.SKIPPED}
    for status in TASK_TERMINAL - {TaskStatus.COMPLETED}:
        assert TASK_MOVES[status] <= settled | {TaskStatus.QUEUED}


def test_a_stop_is_left_only_for_an_end() -> None:
    assert RUN_MOVES[RunStatus.CANCELLING] == {RunStatus.CANCELLED}
    assert TaskStatus.QUEUED not in TASK_MOVES[TaskStatus.CANCELLING]


def test_apply_refuses_what_the_tables_do_not_have() -> None:
    state = a_state(a_spec(a_task("a")), {"a": TaskStatus.COMPLETED})
    state.run.status = RunStatus.CANCELLING

    with pytest.raises(IllegalMoveError):
        apply(state, TaskFinished(task_id="a", status=TaskStatus.FAILED), START)
    with pytest.raises(IllegalMoveError):
        apply(state, RunFinished(status=RunStatus.COMPLETED), START)
