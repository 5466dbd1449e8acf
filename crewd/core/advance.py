"""What a run does next by itself: the slice of a wide change that is due, then its conclusion.

Every stimulus ends here, so a run always dispatches, waits for something, or ends.
"""

from __future__ import annotations

from typing import Final

from crewd.core.attempts import finish
from crewd.core.effects import Continue
from crewd.core.events import RunBlocked, RunFinished, TaskFinished, TaskRequeued
from crewd.core.keeping import keep_results
from crewd.core.marks import RequeueEnded, RunStopping
from crewd.core.model import Failure, Result, Survivor, Task
from crewd.core.state import DEPENDENCY, RunState
from crewd.core.states import RUN_TERMINAL, TASK_DEAD
from crewd.core.stopping import stop_task
from crewd.core.turn import Turn
from crewd.core.words import RunStatus, TaskStatus

SLICE: Final = 500
"""Tasks that one decision changes when a change is wide; the next stimulus takes the next."""
NAMED: Final = 20
"""Task ids that an event lists."""


def advance(turn: Turn) -> None:
    state = turn.state
    if not state.run.last_run_sequence or state.run.status in RUN_TERMINAL:
        return
    keep_results(turn)
    if _requeue(turn) and _sweep(turn) and _doom(turn):
        _conclude(turn)
    else:
        turn.do(Continue())


def _requeue(turn: Turn) -> bool:
    """Put back what a resume or retry puts back. True when nothing is left to do."""
    state = turn.state
    if not state.run.requeueing:
        return True
    for _ in range(SLICE):
        if not state.revivable:
            turn.note(RequeueEnded())
            return True
        task = state.tasks[state.revivable.popleft()]
        if state.is_revivable(task):
            turn.tell(TaskRequeued(task_id=task.id, cause="resume"))
    return False


def _sweep(turn: Turn) -> bool:
    """End what a stopping run still has. True when all of it was told to end."""
    state = turn.state
    run = state.run
    if not run.stopping:
        return True
    cause = "cancelled" if run.stopping == "cancel" else run.stopping
    changed = 0
    while state.sweep_at < len(state.order):
        if changed == SLICE:
            return False
        task = state.tasks[state.order[state.sweep_at]]
        state.sweep_at += 1
        changed += stop_task(turn, task, cause, run.status_message, force=run.cancel_force)
    return True


def _doom(turn: Turn) -> bool:
    """Skip tasks that can never run because something they need ended badly."""
    state = turn.state
    for _ in range(SLICE):
        if not state.doomed:
            return True
        task = state.tasks[state.doomed.popleft()]
        if task.status is not TaskStatus.QUEUED:
            continue
        if state.is_doomed(task):
            _skip(turn, task)
        else:
            state.unqueue(task.id)
            state.queue(task)
    return False


def _skip(turn: Turn, task: Task) -> None:
    state = turn.state
    broken = [d for d in task.spec.depends_on if state.tasks[d].status in TASK_DEAD]
    reasons = ", ".join(f"{d} ({state.tasks[d].status})" for d in broken[:NAMED])
    finish(
        turn,
        TaskFinished(
            task_id=task.id,
            status=TaskStatus.SKIPPED,
            reason=DEPENDENCY,
            message=f"needs {reasons}",
        ),
    )


def _conclude(turn: Turn) -> None:
    """End or block the run when nothing is in flight, due or asked."""
    state = turn.state
    run = state.run
    if _is_busy(state):
        return
    counts = run.task_counts
    queued = counts.get(TaskStatus.QUEUED, 0)
    if run.status is RunStatus.CANCELLING:
        _finish(turn, RunStatus.CANCELLED, "cancelled", run.cancel_reason)
    elif run.stopping or counts.get(TaskStatus.FAILED, 0):
        if queued and not run.stopping:
            message = "a task failed, and what is left waits for one that needs attention"
            turn.note(RunStopping(cause="fail_fast", message=message))
            turn.do(Continue())
            return
        _fail(turn)
    elif queued or counts.get(TaskStatus.NEEDS_ATTENTION, 0):
        _block(turn)
    elif counts.get(TaskStatus.CANCELLED, 0):
        _finish(turn, RunStatus.CANCELLED, "tasks_cancelled", "some tasks were cancelled")
    elif not counts.get(TaskStatus.COMPLETED, 0):
        message = "no task completed"
        error = Failure(reason="nothing_completed", message=message)
        _finish(turn, RunStatus.FAILED, "nothing_completed", message, error)
    else:
        _finish(turn, RunStatus.COMPLETED, "", "")


def _is_busy(state: RunState) -> bool:
    run = state.run
    if state.live or run.open_ask_count or state.delayed or state.ready:
        return True
    return not state.keeping.is_over and run.status is not RunStatus.CANCELLING


def _fail(turn: Turn) -> None:
    state = turn.state
    failed = _with_status(state, TaskStatus.FAILED)
    if state.run.stopping == "limit":
        reason, message = "limit_reached", state.run.status_message
        error = Failure(reason=reason, message=message, retryable=True)
    elif failed:
        first = state.tasks[failed[0]]
        reason = "task_failed"
        message = f"task {first.id} failed: {first.status_message}"
        error = Failure(
            reason=first.status_reason,
            message=message,
            task_id=first.id,
            retryable=bool(first.error and first.error.retryable),
        )
    else:
        reason, message = "task_failed", state.run.status_message
        error = Failure(reason=reason, message=message)
    _finish(turn, RunStatus.FAILED, reason, message, error)


def _finish(
    turn: Turn, status: RunStatus, reason: str, message: str, error: Failure | None = None
) -> None:
    state = turn.state
    turn.tell(
        RunFinished(
            status=status,
            reason=reason,
            message=message,
            result=_result(state) if status is RunStatus.COMPLETED else None,
            error=error,
            failed_task_ids=tuple(_with_status(state, TaskStatus.FAILED)[:NAMED]),
            survivors=_survivors(state),
        )
    )


def _block(turn: Turn) -> None:
    state = turn.state
    if state.run.status is RunStatus.BLOCKED:
        return
    ids = _with_status(state, TaskStatus.NEEDS_ATTENTION)
    named = ", ".join(ids[:3]) + ("…" if len(ids) > 3 else "")  # noqa: PLR2004 - a short sentence
    turn.tell(
        RunBlocked(
            reason="needs_attention",
            detail=f"{named} ended without handing in a result: resolve or retry",
            task_ids=tuple(ids[:NAMED]),
        )
    )


def _with_status(state: RunState, status: TaskStatus) -> list[str]:
    if not state.run.task_counts.get(status, 0):
        return []
    return [task.id for task in state.tasks.values() if task.status is status]


def _result(state: RunState) -> Result | None:
    """Return the result of the last completed task that no other needs."""
    for task_id in reversed(state.order):
        task = state.tasks[task_id]
        if task.status is TaskStatus.COMPLETED and not state.dependents.get(task_id):
            return task.result
    return None


def _survivors(state: RunState) -> tuple[Survivor, ...]:
    return tuple(s for attempt in state.attempts.values() for s in attempt.survivors)[:NAMED]
