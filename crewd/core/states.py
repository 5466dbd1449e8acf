"""Which status may follow which. `apply` refuses every other move.

A terminal status is left only by a person: ResumeRun and RetryTasks put a task back in the queue,
ResolveTask settles it anew, and each of them opens a finished run again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from crewd.core.words import RunStatus as R
from crewd.core.words import TaskStatus as T

RUN_MOVES: Final[Mapping[R, frozenset[R]]] = {
    R.QUEUED: frozenset({R.PLANNING, R.RUNNING, R.BLOCKED, R.CANCELLING, R.FAILED, R.CANCELLED}),
    R.PLANNING: frozenset({R.RUNNING, R.BLOCKED, R.CANCELLING, R.FAILED, R.CANCELLED}),
    R.RUNNING: frozenset({R.BLOCKED, R.CANCELLING, R.COMPLETED, R.FAILED, R.CANCELLED}),
    R.BLOCKED: frozenset({R.RUNNING, R.CANCELLING, R.FAILED, R.CANCELLED}),
    R.CANCELLING: frozenset({R.CANCELLED}),
    R.COMPLETED: frozenset({R.RUNNING}),
    R.FAILED: frozenset({R.RUNNING}),
    R.CANCELLED: frozenset({R.RUNNING}),
}

TASK_MOVES: Final[Mapping[T, frozenset[T]]] = {
    T.QUEUED: frozenset({T.RUNNING, T.FAILED, T.CANCELLED, T.SKIPPED}),
    T.RUNNING: frozenset(
        {
            T.QUEUED,
            T.WAITING,
            T.CANCELLING,
            T.COMPLETED,
            T.FAILED,
            T.CANCELLED,
            T.NEEDS_ATTENTION,
        }
    ),
    T.WAITING: frozenset(
        {
            T.QUEUED,
            T.RUNNING,
            T.CANCELLING,
            T.COMPLETED,
            T.FAILED,
            T.CANCELLED,
            T.NEEDS_ATTENTION,
        }
    ),
    T.CANCELLING: frozenset({T.CANCELLED, T.COMPLETED, T.FAILED, T.NEEDS_ATTENTION}),
    T.COMPLETED: frozenset(),
    T.FAILED: frozenset({T.QUEUED, T.COMPLETED, T.SKIPPED}),
    T.CANCELLED: frozenset({T.QUEUED, T.COMPLETED, T.FAILED, T.SKIPPED}),
    T.SKIPPED: frozenset({T.QUEUED, T.COMPLETED, T.FAILED}),
    T.NEEDS_ATTENTION: frozenset({T.QUEUED, T.COMPLETED, T.FAILED, T.SKIPPED, T.CANCELLED}),
}

RUN_TERMINAL: Final = frozenset({R.COMPLETED, R.FAILED, R.CANCELLED})
TASK_TERMINAL: Final = frozenset({T.COMPLETED, T.FAILED, T.CANCELLED, T.SKIPPED})
TASK_LIVE: Final = frozenset({T.RUNNING, T.WAITING, T.CANCELLING})
TASK_DEAD: Final = frozenset({T.FAILED, T.CANCELLED, T.SKIPPED})
"""Statuses that make dependents unreachable."""


class IllegalMoveError(Exception):
    """A decision moved something where it may not go: a bug of ours, never a user's mistake."""

    def __init__(self, what: str, old: str, new: str) -> None:
        super().__init__(f"{what} may not go from {old} to {new}")


def check_run_move(run_id: str, old: R, new: R) -> None:
    if new not in RUN_MOVES[old]:
        raise IllegalMoveError(f"run {run_id}", old, new)


def check_task_move(task_id: str, old: T, new: T) -> None:
    if new not in TASK_MOVES[old]:
        raise IllegalMoveError(f"task {task_id}", old, new)
