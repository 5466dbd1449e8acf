"""When a worker has done: what it handed in, whether that is enough, and what it is told then.

A worker hands in by a result of its own (a line of its protocol, a tool, a call). An agent that
only stops talking has handed in what it said last, unless its task asks for data: then it is
reminded in the same session, and after the last reminder a person has to look.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crewd.core.control import status_conflict
from crewd.core.dispatch import is_stopping, say
from crewd.core.effects import CloseStdin
from crewd.core.errors import CrewdError, Reason, Violation
from crewd.core.marks import Dismissed, Nudged, ResultRecorded, ResultRejected
from crewd.core.messages import prompt_message, reply_message
from crewd.core.model import Attempt, HandedIn, Result
from crewd.core.output_schema import problems_of
from crewd.core.pass_on import promise
from crewd.core.reports import ResultGiven, TurnEnded, TurnStop
from crewd.core.spec import AGENTS, Adapter
from crewd.core.turn import Turn
from crewd.core.units import later, seconds
from crewd.core.verdict import failing
from crewd.core.words import Cause, OutboxKind, Outcome

LINGER: Final = seconds(5)
"""How long a worker has to exit once it has nothing more to do."""
REMINDERS: Final = 3
REJECTIONS: Final = 2
"""Results that may miss the schema before a person has to look."""
GO_ON: Final = "Your answer was cut off at its length limit. Go on exactly where it stopped."
_LISTED: Final = 5


def check_result(turn: Turn, attempt: Attempt, given: ResultGiven) -> None:
    """Refuse, with all that is wrong, a result that the worker can hand in again."""
    if attempt.handed_in is not None:
        message = "a result was handed in before; only the first one counts"
        raise status_conflict(turn.state.tasks[attempt.task_id], message)
    problems = _problems(turn, attempt, given)
    if problems:
        raise CrewdError(
            Reason.SPEC_INVALID,
            f"data does not satisfy the schema of task {attempt.task_id}: {problems[0]}",
            violations=[Violation("data_json", problem) for problem in problems],
        )


def result_given(turn: Turn, attempt: Attempt, given: ResultGiven) -> None:
    """Record the first result that satisfies what the task asks for."""
    if attempt.handed_in is not None:
        message = "a result was handed in before; nothing changed"
        body = reply_message(given.ref, taken=False, message=message, done=True)
        _reply(turn, attempt, given.ref, body)
        return
    problems = _problems(turn, attempt, given)
    if problems:
        _reject(turn, attempt, given, problems)
        return
    _record(turn, attempt, given.result, _own_word(turn, attempt, given))
    body = reply_message(given.ref, taken=True, message="taken; you are done")
    _reply(turn, attempt, given.ref, body)
    if attempt.adapter == Adapter.JSONL:
        _dismiss(turn, attempt)


def _own_word(turn: Turn, attempt: Attempt, given: ResultGiven) -> HandedIn:
    """Return what the worker says of its work, and what a verdict says of the work of others."""
    verifies = turn.state.tasks[attempt.task_id].spec.verify
    wrong = failing(given.result.data_json) if verifies else ""
    if wrong:
        return HandedIn(outcome=Outcome.FAILED, cause=Cause.CHECK_FAILED, message=wrong)
    return HandedIn(
        outcome=given.outcome,
        cause=given.cause,
        message=given.message,
        retryable=given.retryable and given.outcome is Outcome.FAILED,
    )


def turn_ended(turn: Turn, attempt: Attempt, ended: TurnEnded) -> None:
    """Judge an agent's turn: done, to be continued, or not what was asked for."""
    if attempt.linger_until is not None or (attempt.handed_in and is_stopping(attempt)):
        return  # It was let go before, and its process may be promised.
    if attempt.handed_in is None:
        prompt = _next_prompt(turn, attempt, ended)
        if prompt:
            turn.note(Nudged(task_id=attempt.task_id, attempt=attempt.number))
            say(turn, attempt, OutboxKind.PROMPT, prompt_message(prompt))
            return
        _record(turn, attempt, ended.result, _judged(turn, attempt, ended))
    _dismiss(turn, attempt)


def _next_prompt(turn: Turn, attempt: Attempt, ended: TurnEnded) -> str:
    """Return what to tell an agent that has stopped too early; empty when it may go."""
    if ended.stop is TurnStop.LENGTH:
        return GO_ON if not attempt.nudges else ""
    if ended.stop is not TurnStop.DONE or not _schema(turn, attempt):
        return ""
    if attempt.nudges >= REMINDERS:
        return ""
    return (
        f"Reminder {attempt.nudges + 1} of {REMINDERS}: you have not handed in. Call the tool "
        "submit_result now, with a summary and the data that was asked for."
    )


def _judged(turn: Turn, attempt: Attempt, ended: TurnEnded) -> HandedIn:
    match ended.stop:
        case TurnStop.FAILED:
            return HandedIn(
                outcome=Outcome.FAILED,
                cause=ended.cause or Cause.REPORTED,
                message=ended.message or "the model's provider failed",
                retryable=ended.retryable,
            )
        case TurnStop.ABORTED:
            message = "the agent's turn was aborted"
            return HandedIn(
                outcome=Outcome.FAILED, cause=Cause.REPORTED, message=message, retryable=True
            )
        case TurnStop.LENGTH:
            message = "its answer was cut at the model's length limit, twice"
            return HandedIn(outcome=Outcome.NEEDS_ATTENTION, cause=Cause.TRUNCATED, message=message)
        case TurnStop.DONE:
            pass
    if _schema(turn, attempt):
        message = f"did not hand in the data that was asked for, after {REMINDERS} reminders"
        return HandedIn(outcome=Outcome.NEEDS_ATTENTION, cause=Cause.NO_RESULT, message=message)
    if not ended.result.text.strip():
        return HandedIn(
            outcome=Outcome.FAILED,
            cause=Cause.EMPTY,
            message="the agent ended its turn without saying anything",
            retryable=True,
        )
    return HandedIn(outcome=Outcome.COMPLETED)


def _reject(turn: Turn, attempt: Attempt, given: ResultGiven, problems: Sequence[str]) -> None:
    turn.note(ResultRejected(task_id=attempt.task_id, attempt=attempt.number))
    listed = "; ".join(problems[:_LISTED])
    last = not given.ref or attempt.rejections > REJECTIONS
    advice = "it counts as it is; a person will look" if last else "mend it and hand in again"
    told = f"not taken: {listed}; {advice}"
    body = reply_message(given.ref, taken=False, message=told, done=last)
    _reply(turn, attempt, given.ref, body)
    if last:
        message = f"what it handed in does not satisfy the schema: {listed}"
        handed_in = HandedIn(
            outcome=Outcome.NEEDS_ATTENTION, cause=Cause.NO_RESULT, message=message
        )
        _record(turn, attempt, given.result, handed_in)
        if attempt.adapter == Adapter.JSONL:
            _dismiss(turn, attempt)


def _record(turn: Turn, attempt: Attempt, result: Result, handed_in: HandedIn) -> None:
    turn.note(
        ResultRecorded(
            task_id=attempt.task_id, attempt=attempt.number, result=result, handed_in=handed_in
        )
    )


def _dismiss(turn: Turn, attempt: Attempt) -> None:
    """Let it go; the process stays for the next task of its kind if there is one."""
    goes_on = attempt.adapter in AGENTS and promise(turn, attempt)
    turn.note(
        Dismissed(
            task_id=attempt.task_id,
            attempt=attempt.number,
            linger_until=later(turn.now, LINGER),
        )
    )
    if not goes_on:
        turn.do(CloseStdin(task_id=attempt.task_id, attempt=attempt.number))


def _reply(turn: Turn, attempt: Attempt, ref: str, body: str) -> None:
    if ref:
        say(turn, attempt, OutboxKind.REPLY, body)


def _problems(turn: Turn, attempt: Attempt, given: ResultGiven) -> tuple[str, ...]:
    schema = _schema(turn, attempt)
    if not schema or given.outcome is not Outcome.COMPLETED:
        return ()
    return problems_of(schema, given.result.data_json)


def _schema(turn: Turn, attempt: Attempt) -> str:
    return turn.state.tasks[attempt.task_id].spec.output.schema_json
