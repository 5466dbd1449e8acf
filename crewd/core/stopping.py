"""Stopping what runs: `cancelled` is told once the host has proven it or named what is left."""

from __future__ import annotations

from typing import Final

from crewd.core.asks import close_asks
from crewd.core.attempts import finish, lose
from crewd.core.dispatch import WANTS_STDIN, is_preparing, say
from crewd.core.effects import StopWorker
from crewd.core.events import CANCELLING_CAUSES, AttemptStopping, TaskFinished
from crewd.core.messages import stop_message
from crewd.core.model import Attempt, Task
from crewd.core.turn import Turn
from crewd.core.units import SECOND, Span, later, seconds
from crewd.core.words import AskStatus, AttemptStatus, OutboxKind, TaskStatus

GRACE: Final = seconds(5)
"""Between TERM and KILL."""
NO_GRACE: Final = Span(0)
FORCE_WAIT: Final = seconds(5)
"""How long a forced stop waits for the host's proof before it settles without."""


def stop_attempt(turn: Turn, attempt: Attempt, cause: str, *, force: bool = False) -> None:
    """Intend the stop, tell the worker if it listens, and have the host carry it out."""
    first = attempt.status is not AttemptStatus.STOPPING
    forces = force and attempt.force_until is None
    if first or forces or _becomes_cancelled(turn, attempt, cause):
        turn.tell(
            AttemptStopping(
                task_id=attempt.task_id,
                attempt=attempt.number,
                cause=cause,
                force_until=later(turn.now, FORCE_WAIT) if forces else None,
            )
        )
    if is_preparing(turn.state, attempt):
        lose(turn, attempt, proof="never_started")
        return
    grace = NO_GRACE if attempt.force_until is not None else GRACE
    if first and attempt.adapter in WANTS_STDIN and attempt.handed_in is None:
        say(turn, attempt, OutboxKind.STOP, stop_message(cause, grace))
    if cause in CANCELLING_CAUSES:
        close_asks(turn, attempt.task_id, AskStatus.CANCELLED)
    turn.do(stop_effect(attempt, grace))


def _becomes_cancelled(turn: Turn, attempt: Attempt, cause: str) -> bool:
    """Say whether an attempt that stops for another cause is not to be tried again after all."""
    task = turn.state.tasks[attempt.task_id]
    return (
        cause in CANCELLING_CAUSES
        and task.status is not TaskStatus.CANCELLING
        and attempt.handed_in is None
    )


def stop_effect(attempt: Attempt, grace: Span) -> StopWorker:
    return StopWorker(
        task_id=attempt.task_id,
        attempt=attempt.number,
        grace_ms=grace * 1000 // SECOND,
    )


def stop_task(turn: Turn, task: Task, cause: str, message: str, *, force: bool = False) -> bool:
    """End one task of a run that stops, or say that it needs no ending.

    A task that was never started is cancelled by a person and skipped by anything else.
    """
    if task.id in turn.state.live:
        stop_attempt(turn, turn.state.attempts[task.id], cause, force=force)
    elif task.status is TaskStatus.QUEUED:
        skipped = cause != "cancelled" and task.attempt == 0
        status = TaskStatus.SKIPPED if skipped else TaskStatus.CANCELLED
        _end(turn, task, status, cause, message)
    elif task.status is TaskStatus.NEEDS_ATTENTION and cause == "cancelled":
        _end(turn, task, TaskStatus.CANCELLED, cause, message)
    else:
        close_asks(turn, task.id, AskStatus.CANCELLED)
        return False
    return True


def _end(turn: Turn, task: Task, status: TaskStatus, reason: str, message: str) -> None:
    finish(turn, TaskFinished(task_id=task.id, status=status, reason=reason, message=message))
