"""A person's commands that go on after an end: resume, retry, resolve.

Resume is a retry of everything that is not completed. Both put tasks back in slices, and nothing
starts until all are back, so that a task cannot fail again while its run is still being reopened.
"""

from __future__ import annotations

from typing import Final

from crewd.core.attempts import finish
from crewd.core.control import find_task, status_conflict
from crewd.core.errors import CrewdError, Reason
from crewd.core.events import RunResumed, TaskFinished, TaskRequeued
from crewd.core.model import Failure, Result, Run, Task
from crewd.core.redaction.redactor import redact
from crewd.core.states import RUN_TERMINAL, TASK_DEAD
from crewd.core.stimuli import Resolution, Resolve, Resume, Retry
from crewd.core.turn import Turn
from crewd.core.words import RunStatus, TaskStatus

REOPENABLE = TASK_DEAD | {TaskStatus.NEEDS_ATTENTION}
NAMED: Final = 20
"""Task ids that an event lists."""


def resume(turn: Turn, stimulus: Resume) -> None:
    """Go on with everything that is not completed."""
    run = turn.state.run
    _refuse_while_stopping(run)
    if run.status is RunStatus.COMPLETED:
        raise _nothing_to_do(run, "every task that can be is completed")
    if not _any_reopenable(run):
        raise _nothing_to_do(run, "it is going on by itself")
    turn.tell(RunResumed(cause="resume", note=redact(stimulus.note), requeueing="all"))


def retry(turn: Turn, stimulus: Retry) -> None:
    """Put these tasks back in the queue, and what was skipped for their sake."""
    run = turn.state.run
    _refuse_while_stopping(run)
    if not stimulus.task_ids:
        if not _any_reopenable(run):
            raise _nothing_to_do(run, "no task failed, was cancelled, skipped or needs attention")
        turn.tell(RunResumed(cause="retry", requeueing="all"))
        return
    tasks = [find_task(turn.state, task_id) for task_id in dict.fromkeys(stimulus.task_ids)]
    for task in tasks:
        if task.status not in REOPENABLE:
            raise status_conflict(task, "only a task that ended without completing is retried")
    _reopen(turn, "retry", tuple(task.id for task in tasks[:NAMED]), "dependents")
    for task in tasks:
        turn.tell(TaskRequeued(task_id=task.id, cause="retry"))


def resolve(turn: Turn, stimulus: Resolve) -> None:
    """Settle a task by a person's word."""
    run = turn.state.run
    _refuse_while_stopping(run)
    task = find_task(turn.state, stimulus.task_id)
    if task.status not in REOPENABLE:
        raise status_conflict(task, "only a task that ended without completing is resolved")
    status = {
        Resolution.ACCEPT: TaskStatus.COMPLETED,
        Resolution.FAIL: TaskStatus.FAILED,
        Resolution.SKIP: TaskStatus.SKIPPED,
    }[stimulus.resolution]
    if task.status is status:
        raise status_conflict(task, "it is that already")
    _reopen(turn, "resolve", (), "" if status is TaskStatus.FAILED else "dependents")
    finish(turn, _resolved(turn, task, status, stimulus))
    if status is TaskStatus.COMPLETED:
        turn.state.revivable.extend(turn.state.dependents.get(task.id, ()))


def _resolved(turn: Turn, task: Task, status: TaskStatus, stimulus: Resolve) -> TaskFinished:
    by = turn.actor.name
    message = redact(stimulus.note) or f"set to {status} by {by}"
    failed = status is TaskStatus.FAILED
    return TaskFinished(
        task_id=task.id,
        status=status,
        reason="resolved",
        message=message,
        result=task.result or (Result() if status is TaskStatus.COMPLETED else None),
        error=Failure(reason="resolved", message=message, task_id=task.id) if failed else None,
        note=redact(stimulus.note),
    )


def _reopen(turn: Turn, cause: str, task_ids: tuple[str, ...], requeueing: str) -> None:
    turn.tell(RunResumed(cause=cause, requeued_task_ids=task_ids, requeueing=requeueing))


def _any_reopenable(run: Run) -> bool:
    return any(run.task_counts.get(status, 0) for status in REOPENABLE)


def _refuse_while_stopping(run: Run) -> None:
    if run.status is RunStatus.CANCELLING or (run.stopping and run.status not in RUN_TERMINAL):
        raise CrewdError(
            Reason.RUN_STATUS_CONFLICT,
            f"run {run.id} is still stopping ({run.stopping}); wait until it has ended",
            run_id=run.id,
            status=run.status,
        )


def _nothing_to_do(run: Run, why: str) -> CrewdError:
    return CrewdError(
        Reason.RUN_STATUS_CONFLICT,
        f"run {run.id} is {run.status}: {why}",
        run_id=run.id,
        status=run.status,
    )
