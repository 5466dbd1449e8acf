"""A person's commands on a run as it is: cancel, steer, delete."""

from __future__ import annotations

from crewd.core.dispatch import listens, send_note
from crewd.core.errors import CrewdError, Reason
from crewd.core.events import RunCancelRequested, RunDeleted
from crewd.core.marks import RunStopping
from crewd.core.model import Task
from crewd.core.redaction.redactor import redact
from crewd.core.state import RunState
from crewd.core.states import RUN_TERMINAL, TASK_TERMINAL
from crewd.core.stimuli import Break, Cancel, CancelTasks, Delete, Steer
from crewd.core.stopping import stop_task
from crewd.core.turn import Turn
from crewd.core.words import RunStatus


def cancel(turn: Turn, stimulus: Cancel) -> None:
    """Ask for the end of the run. A repeat changes nothing; `force` may be added later."""
    run = turn.state.run
    if run.status in RUN_TERMINAL:
        return
    if run.status is not RunStatus.CANCELLING or (stimulus.force and not run.cancel_force):
        turn.tell(RunCancelRequested(reason=redact(stimulus.reason), force=stimulus.force))


def cancel_tasks(turn: Turn, stimulus: CancelTasks) -> None:
    """Cancel these tasks only; what depends on them is skipped."""
    tasks = [find_task(turn.state, task_id) for task_id in dict.fromkeys(stimulus.task_ids)]
    for task in tasks:
        if task.status in TASK_TERMINAL:
            raise status_conflict(task, "it has ended")
    for task in tasks:
        stop_task(turn, task, "cancelled", redact(stimulus.reason))


def steer(turn: Turn, stimulus: Steer) -> None:
    """Hand a note to a worker that says it listens."""
    state = turn.state
    task = find_task(state, stimulus.task_id)
    attempt = state.attempts.get(task.id)
    if task.id not in state.live or attempt is None or not listens(attempt):
        raise _not_steerable(task, f"it is {task.status}: no worker is running that listens")
    if not task.capabilities.can_steer:
        raise _not_steerable(task, f"its worker ({attempt.adapter}) takes no notes")
    send_note(turn, attempt, stimulus.steer_id, stimulus.text)


def break_off(turn: Turn, stimulus: Break) -> None:
    """Stop a run that the daemon itself cannot carry on."""
    run = turn.state.run
    if run.status not in RUN_TERMINAL and not run.stopping:
        message = f"stopped by an internal error, incident {stimulus.incident_id}"
        turn.note(RunStopping(cause="incident", message=message))


def delete(turn: Turn, stimulus: Delete) -> None:
    """Remove a finished run and all that belongs to it."""
    run = turn.state.run
    if run.status not in RUN_TERMINAL:
        raise CrewdError(
            Reason.RUN_NOT_FINISHED,
            f"run {run.id} is {run.status}; cancel it before it is deleted",
            run_id=run.id,
            status=run.status,
        )
    turn.tell(RunDeleted(freed_bytes=stimulus.freed_bytes))


def find_task(state: RunState, task_id: str) -> Task:
    task = state.tasks.get(task_id)
    if task is None:
        raise CrewdError(
            Reason.TASK_NOT_FOUND,
            f"run {state.run.id} has no task {task_id!r}",
            run_id=state.run.id,
            task_id=task_id,
        )
    return task


def status_conflict(task: Task, why: str) -> CrewdError:
    return CrewdError(
        Reason.TASK_STATUS_CONFLICT,
        f"task {task.id} is {task.status}: {why}",
        run_id=task.run_id,
        task_id=task.id,
        status=task.status,
    )


def _not_steerable(task: Task, why: str) -> CrewdError:
    return CrewdError(
        Reason.NOT_STEERABLE,
        f"task {task.id} cannot be steered: {why}",
        run_id=task.run_id,
        task_id=task.id,
    )
