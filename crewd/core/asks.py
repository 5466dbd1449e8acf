"""Questions: opened once, answered at most once, handed on once, and never made up.

An ask belongs to its task. If the attempt that asked ends, the ask stays; the next attempt that
asks the same gets it, with its answer if there is one already.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from crewd.core.dispatch import listens, say
from crewd.core.errors import CrewdError, Reason
from crewd.core.events import AskAttached, AskDelivered, AskOpened, AskSettled, WarningRaised
from crewd.core.marks import ClockPaused, ClockResumed
from crewd.core.messages import answer_message
from crewd.core.model import Actor, Answer, Ask, Attempt, Task
from crewd.core.redaction.redactor import redact
from crewd.core.reports import Asked, AskWithdrawn
from crewd.core.spec import OnTimeout
from crewd.core.state import RunState
from crewd.core.stimuli import AnswerAsk, AskTaken
from crewd.core.turn import Turn
from crewd.core.units import Instant, Span, later
from crewd.core.words import (
    ActorKind,
    AskChannel,
    AskStatus,
    Delivery,
    OutboxKind,
    TaskStatus,
)

TITLE_CHARACTERS: Final = 80
SETTLED_BY_PERSON: Final = frozenset({AskStatus.ANSWERED, AskStatus.DECLINED})


def asked(turn: Turn, attempt: Attempt, report: Asked) -> None:
    """Open a new question, or attach one that its task has asked before."""
    known = same_question(turn.state, attempt, report)
    if known is None:
        _open(turn, attempt, report)
    elif known.attempt == attempt.number:
        return
    else:
        turn.tell(
            AskAttached(
                ask_id=known.id,
                task_id=attempt.task_id,
                attempt=attempt.number,
                worker_ref=report.ref,
                channel=report.channel,
            )
        )
        if known.status is not AskStatus.OPEN and report.channel is AskChannel.STDIN:
            say(turn, attempt, OutboxKind.ANSWER, answer_message(known), known.id)
    _stop_clock(turn, attempt)


def withdrawn(turn: Turn, attempt: Attempt, report: AskWithdrawn) -> None:
    for ask in list(turn.state.open_asks(attempt.task_id)):
        if ask.worker_ref == report.ref and ask.attempt == attempt.number:
            settle_ask(turn, ask, AskStatus.SUPERSEDED)


def answer(turn: Turn, stimulus: AnswerAsk) -> None:
    """Settle the ask by a person's word. The first one wins."""
    ask = turn.state.asks.get(stimulus.ask_id)
    if ask is None:
        raise CrewdError(
            Reason.ASK_NOT_FOUND,
            f"this run has no open ask {stimulus.ask_id}",
            ask_id=stimulus.ask_id,
        )
    if ask.status is not AskStatus.OPEN:
        raise already_settled(ask)
    if stimulus.decline:
        given = Answer(note=stimulus.answer.note, text=stimulus.answer.text)
        settle_ask(turn, ask, AskStatus.DECLINED, given=given, by=stimulus.actor)
        return
    chosen = tuple(dict.fromkeys(stimulus.answer.option_ids))
    given = replace(stimulus.answer, option_ids=chosen)
    _check_answer(ask, given)
    settle_ask(turn, ask, AskStatus.ANSWERED, given=given, by=stimulus.actor)


def already_settled(ask: Ask) -> CrewdError:
    by = f" by {ask.answered_by.name}" if ask.answered_by else ""
    return CrewdError(
        Reason.ASK_SETTLED,
        f"ask {ask.id} was settled before: {ask.status}{by}",
        ask_id=ask.id,
        run_id=ask.run_id,
        status=ask.status,
    )


def expired(turn: Turn, ask: Ask) -> bool:
    """Do what the ask's author chose for silence. True when its task must fail."""
    by = Actor(ActorKind.POLICY, f"on_timeout={ask.on_timeout}")
    if ask.on_timeout is OnTimeout.DECLINE:
        settle_ask(turn, ask, AskStatus.DECLINED, by=by)
    elif ask.on_timeout is OnTimeout.DEFAULT_OPTION:
        given = Answer(option_ids=(ask.default_option_id,))
        settle_ask(turn, ask, AskStatus.ANSWERED, given=given, by=by)
    else:
        settle_ask(turn, ask, AskStatus.TIMED_OUT, by=by)
    return ask.on_timeout is OnTimeout.FAIL_TASK


def close_asks(turn: Turn, task_id: str, outcome: AskStatus) -> None:
    for ask in list(turn.state.open_asks(task_id)):
        settle_ask(turn, ask, outcome)


def settle_ask(
    turn: Turn,
    ask: Ask,
    outcome: AskStatus,
    *,
    given: Answer | None = None,
    by: Actor | None = None,
) -> None:
    """Record the outcome, and hand it to the worker if the one that asked is still there."""
    attempt = turn.state.live_attempt(ask.task_id, ask.attempt)
    tell_worker = attempt is not None and listens(attempt)
    shown = None if given is None else _redacted(given)
    masked = shown != given
    keep_raw = masked and tell_worker and ask.channel is AskChannel.CALL
    turn.tell(
        AskSettled(
            ask_id=ask.id,
            task_id=ask.task_id,
            attempt=ask.attempt,
            outcome=outcome,
            answer=shown,
            answer_masked=masked,
            raw_text=given.text if given is not None and keep_raw else "",
            by=by,
            delivery=Delivery.QUEUED if tell_worker else Delivery.NONE,
        ),
        actor=by,
    )
    if attempt is not None and tell_worker:
        if ask.channel is AskChannel.STDIN:
            say(turn, attempt, OutboxKind.ANSWER, answer_message(ask, given), ask.id)
        _start_clock(turn, attempt)


def taken(turn: Turn, stimulus: AskTaken) -> None:
    """Note that the worker has the outcome it waited for by call."""
    ask = turn.state.asks.get(stimulus.ask_id)
    if ask is not None and ask.delivery is Delivery.QUEUED:
        _tell_delivery(turn, ask, Delivery.DELIVERED)


def drop_awaited(turn: Turn, task_id: str) -> None:
    """Tell of outcomes that a caller did not live to come for."""
    for ask_id in turn.state.task_asks.get(task_id, ()):
        ask = turn.state.asks[ask_id]
        if ask.channel is AskChannel.CALL and ask.delivery is Delivery.QUEUED:
            _tell_delivery(turn, ask, Delivery.UNDELIVERABLE)


def _tell_delivery(turn: Turn, ask: Ask, delivery: Delivery) -> None:
    turn.tell(
        AskDelivered(ask_id=ask.id, task_id=ask.task_id, attempt=ask.attempt, delivery=delivery)
    )


def _redacted(given: Answer) -> Answer:
    return replace(given, text=redact(given.text), note=redact(given.note))


def same_question(state: RunState, attempt: Attempt, report: Asked) -> Ask | None:
    """Return the ask that this question is one with."""
    asks = [state.asks[i] for i in state.task_asks.get(attempt.task_id, ())]
    mine = [a for a in asks if a.attempt == attempt.number and a.worker_ref == report.ref]
    if mine:
        return mine[-1]
    if report.channel is AskChannel.CALL:
        # The caller was ended while it waited, and asks again.
        mine = [a for a in asks if a.attempt == attempt.number and _is_awaited(a)]
        mine = [a for a in mine if _same_words(a, report)]
        if mine:
            return mine[-1]
    earlier = [
        a
        for a in asks
        if a.attempt < attempt.number
        and (a.status is AskStatus.OPEN or a.status in SETTLED_BY_PERSON)
        and not a.answer_masked
        and (a.worker_ref == report.ref or _same_words(a, report))
    ]
    return earlier[-1] if earlier else None


def _is_awaited(ask: Ask) -> bool:
    """Say whether a caller still has to come for its outcome."""
    untaken = ask.status is AskStatus.OPEN or ask.delivery is Delivery.QUEUED
    return ask.channel is AskChannel.CALL and untaken


def _same_words(ask: Ask, report: Asked) -> bool:
    return ask.question == report.question and ask.options == report.options


def _open(turn: Turn, attempt: Attempt, report: Asked) -> None:
    state = turn.state
    task, policy = state.tasks[attempt.task_id], state.run.spec.asks
    on_timeout = report.on_timeout or policy.on_timeout
    default = report.default_option_id or policy.default_option_id
    if on_timeout is OnTimeout.DEFAULT_OPTION and default not in {o.id for o in report.options}:
        turn.tell(
            WarningRaised(
                code="default_option_missing",
                message=f"no option has the id {default!r}, so the question waits for a person",
                task_id=task.id,
                attempt=attempt.number,
            )
        )
        on_timeout = OnTimeout.WAIT
    timeout = report.timeout if report.timeout is not None else policy.timeout
    turn.tell(
        AskOpened(
            Ask(
                id=report.id,
                run_id=state.run.id,
                task_id=task.id,
                attempt=attempt.number,
                worker_ref=report.ref,
                channel=report.channel,
                kind=report.kind,
                title=_title(report.question),
                question=report.question,
                detail=report.detail,
                options=report.options,
                allow_text=report.allow_text,
                min_choices=0 if report.allow_text else 1,
                max_choices=len(report.options) if report.multiple else min(1, len(report.options)),
                default_option_id=default,
                on_timeout=on_timeout,
                expire_time=_expiry(turn.now, timeout, on_timeout),
                run_title=redact(state.run.title),
                task_title=redact(task.spec.title) or task.id,
                workspace_cwd=state.run.spec.cwd,
                create_time=turn.now,
            )
        )
    )


def _expiry(now: Instant, timeout: Span | None, on_timeout: OnTimeout) -> Instant | None:
    if timeout is None or on_timeout is OnTimeout.WAIT:
        return None
    return later(now, timeout)


def _title(question: str) -> str:
    first = question.strip().partition("\n")[0]
    return first if len(first) <= TITLE_CHARACTERS else first[: TITLE_CHARACTERS - 1] + "…"


def _check_answer(ask: Ask, given: Answer) -> None:
    offered = {option.id for option in ask.options}
    unknown = [option for option in given.option_ids if option not in offered]
    count = len(set(given.option_ids))
    if unknown:
        problem = f"it has no option {unknown[0]!r}"
    elif given.text and not ask.allow_text:
        problem = "it takes no free text"
    elif not given.text and not count:
        problem = "the answer is empty"
    elif count > ask.max_choices:
        problem = f"it takes at most {ask.max_choices} options"
    elif count < ask.min_choices and not given.text:
        problem = f"it takes at least {ask.min_choices} options"
    else:
        return
    choices = ", ".join(option.id for option in ask.options) or "free text"
    raise CrewdError(
        Reason.ANSWER_NOT_ALLOWED,
        f"ask {ask.id} cannot be answered so: {problem}; choose from: {choices}",
        ask_id=ask.id,
        choices=choices,
    )


def _stop_clock(turn: Turn, attempt: Attempt) -> None:
    task: Task = turn.state.tasks[attempt.task_id]
    if task.status is TaskStatus.WAITING and attempt.deadline is not None:
        left = Span(max(0, attempt.deadline - turn.now))
        turn.note(ClockPaused(task_id=task.id, attempt=attempt.number, time_left=left))


def _start_clock(turn: Turn, attempt: Attempt) -> None:
    task = turn.state.tasks[attempt.task_id]
    if task.status is not TaskStatus.WAITING and attempt.time_left is not None:
        deadline = later(turn.now, attempt.time_left)
        turn.note(ClockResumed(task_id=task.id, attempt=attempt.number, deadline=deadline))
