"""Moving a run or a task from one status to the next, and what hangs on it."""

from __future__ import annotations

from crewd.core.model import Task
from crewd.core.state import RunState
from crewd.core.states import (
    RUN_TERMINAL,
    TASK_DEAD,
    TASK_LIVE,
    check_run_move,
    check_task_move,
)
from crewd.core.units import Instant
from crewd.core.words import RunStatus, TaskStatus


def wait(state: RunState, task: Task, now: Instant) -> None:
    if task.status is TaskStatus.RUNNING:
        move_task(state, task, TaskStatus.WAITING, now)
    else:
        touch(state, task, now)


def waits(state: RunState, task: Task) -> bool:
    """Say whether the task's latest attempt has a question open."""
    return any(ask.attempt == task.attempt for ask in state.open_asks(task.id))


def move_run(state: RunState, status: RunStatus) -> None:
    check_run_move(state.run.id, state.run.status, status)
    state.run.status = status
    if status in RUN_TERMINAL:
        state.run.requeueing = ""


def move_task(state: RunState, task: Task, status: TaskStatus, now: Instant) -> None:
    old = task.status
    check_task_move(task.id, old, status)
    task.status = status
    touch(state, task, now)
    counts = state.run.task_counts
    counts[old] -= 1
    counts[status] = counts.get(status, 0) + 1
    if status is TaskStatus.WAITING:
        state.waiting.add(task.id)
    elif old is TaskStatus.WAITING:
        state.waiting.discard(task.id)
    if old is TaskStatus.QUEUED:
        state.unqueue(task.id)
    _tell_dependents(state, task, old)
    if status is TaskStatus.QUEUED:
        state.queue(task)


def _tell_dependents(state: RunState, task: Task, old: TaskStatus) -> None:
    gained = state.satisfies(task.status) - state.satisfies(old)
    died = task.status in TASK_DEAD and old not in TASK_DEAD
    if not gained and not died:
        return
    for dependent_id in state.dependents.get(task.id, ()):
        state.remaining[dependent_id] -= gained
        dependent = state.tasks[dependent_id]
        if dependent.status is not TaskStatus.QUEUED:
            continue
        if died:
            state.unqueue(dependent_id)
            state.doomed.append(dependent_id)
        elif gained < 0:
            state.unqueue(dependent_id)
        elif state.remaining[dependent_id] == 0:
            state.queue(dependent)


def touch(state: RunState, task: Task, now: Instant) -> None:
    task.update_time = now
    if task.status in TASK_LIVE:
        task.last_activity_time = now
    state.changed.task(task)
