"""Deadlines that have passed. Each stands in a row, so a restart forgets none."""

from __future__ import annotations

from typing import Final

from crewd.core.asks import expired
from crewd.core.attempts import fail_task, give_up
from crewd.core.dispatch import is_stopping
from crewd.core.effects import Continue
from crewd.core.limits import stop_at_limit
from crewd.core.model import Attempt
from crewd.core.pace import silent
from crewd.core.stimuli import Due
from crewd.core.stopping import stop_attempt
from crewd.core.turn import Turn
from crewd.core.words import Cause, TaskStatus

SLICE: Final = 500


def due(turn: Turn, _stimulus: Due) -> None:
    for _ in range(SLICE):
        passed = turn.state.pop_due(turn.now)
        if passed is None:
            return
        kind, ref = passed
        _HANDLERS[kind](turn, ref)
    turn.do(Continue())


def _retry(turn: Turn, task_id: str) -> None:
    turn.state.make_ready(turn.state.tasks[task_id])


def _ask(turn: Turn, ask_id: str) -> None:
    ask = turn.state.asks[ask_id]
    if not expired(turn, ask):
        return
    attempt = turn.state.live_attempt(ask.task_id, ask.attempt)
    task = turn.state.tasks[ask.task_id]
    if attempt is not None:
        stop_attempt(turn, attempt, "ask_timeout")
    elif task.status in {TaskStatus.QUEUED, TaskStatus.NEEDS_ATTENTION}:
        fail_task(turn, task, Cause.TIMEOUT, "nobody answered its question in time")


def _run(turn: Turn, _ref: str) -> None:
    run = turn.state.run
    limit = run.spec.limits.max_duration
    if run.stopping or limit is None or run.start_time is None:
        return
    stop_at_limit(turn, "max_duration", turn.now - run.start_time, limit)


def _attempt(turn: Turn, task_id: str) -> None:
    attempt = turn.state.attempts[task_id]
    if _passed(turn, attempt.force_until):
        give_up(turn, attempt)
    elif _passed(turn, attempt.linger_until):
        stop_attempt(turn, attempt, "lingering")
    elif _passed(turn, attempt.deadline) and not _held_by_person(turn, attempt):
        stop_attempt(turn, attempt, "timeout")
    elif _passed(turn, attempt.stall_at):
        silent(turn, attempt)


def _held_by_person(turn: Turn, attempt: Attempt) -> bool:
    return turn.state.tasks[attempt.task_id].status is TaskStatus.WAITING or is_stopping(attempt)


def _passed(turn: Turn, instant: int | None) -> bool:
    return instant is not None and instant <= turn.now


_HANDLERS: Final = {"retry": _retry, "ask": _ask, "run": _run, "attempt": _attempt}
