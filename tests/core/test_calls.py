"""Questions that a worker asks by a call, and whose outcome it comes for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crewd.core.errors import CrewdError, Reason
from crewd.core.events import AskAttached, AskDelivered, AskOpened, TaskProgressed
from crewd.core.model import Actor
from crewd.core.reports import Asked, ProgressMade, Report
from crewd.core.stimuli import AskTaken, WorkerCalled
from crewd.core.words import ActorKind, AskChannel, AskStatus, Delivery, TaskStatus
from tests.support.builders import BROKEN, DONE, RUN_ID, THRICE, a_question, a_spec, a_task
from tests.support.play import Play, Told

WORKER = Actor(ActorKind.WORKER, f"{RUN_ID}/a/1", "crew")
OPENED = AskDelivered(ask_id="ask_q1", task_id="a", attempt=1, delivery=Delivery.DELIVERED)


def by_call(ref: str = "q1", question: str = "Go on?") -> Asked:
    return replace(a_question(ref, question=question), channel=AskChannel.CALL)


def call(play: Play, report: Report, attempt: int = 1) -> Told:
    return play.tell(WorkerCalled(task_id="a", attempt=attempt, report=report, actor=WORKER))


def take(play: Play, ask_id: str = "ask_q1") -> Told:
    return play.tell(AskTaken(ask_id=ask_id, actor=WORKER))


def calling(*reports: Report) -> Play:
    """A run whose plain command has just called so."""
    play = Play.running(a_spec(a_task("a", retry=THRICE)))
    for report in reports:
        call(play, report)
    return play


def next_attempt(play: Play) -> None:
    play.exit("a", BROKEN)
    play.wait(5)
    play.start("a")


def test_what_a_worker_calls_is_recorded_as_its_own_deed() -> None:
    play = calling()
    told = call(play, ProgressMade(text="half", percent=50))
    assert [type(event) for event in told.events] == [TaskProgressed]
    assert play.log[-1].actor == WORKER


def test_a_question_by_call_makes_its_task_wait_and_writes_nothing_to_stdin() -> None:
    play = calling(by_call())
    assert play.task("a").status is TaskStatus.WAITING

    told = play.answer("ask_q1", "yes")

    assert play.ask("ask_q1").delivery is Delivery.QUEUED
    assert (told.effects, play.outbox("a")) == ((), [])
    assert play.task("a").status is TaskStatus.RUNNING


def test_an_outcome_is_delivered_once_it_is_taken_and_only_once() -> None:
    play = calling(by_call())
    play.answer("ask_q1", "yes")
    assert take(play).events == (OPENED,)
    assert take(play).events == ()
    assert take(play, "ask_unknown").events == ()


def test_an_open_question_cannot_be_taken() -> None:
    assert take(calling(by_call())).events == ()


def test_an_outcome_that_nobody_came_for_cannot_be_delivered_any_more() -> None:
    play = calling(by_call())
    play.answer("ask_q1", "yes")
    play.exit("a", BROKEN)
    assert play.ask("ask_q1").delivery is Delivery.UNDELIVERABLE


def test_the_same_words_are_the_same_question_until_its_outcome_was_taken() -> None:
    play = calling(by_call())
    assert call(play, by_call("q2")).events == ()
    play.answer("ask_q1", "yes")
    assert call(play, by_call("q3")).events == ()
    take(play)

    told = call(play, by_call("q4"))

    assert [type(event) for event in told.events] == [AskOpened]
    assert [ask.id for ask in play.state.open_asks("a")] == ["ask_q4"]


def test_the_same_ref_is_the_same_question_for_the_whole_attempt() -> None:
    play = calling(by_call())
    play.answer("ask_q1", "yes")
    take(play)
    assert call(play, by_call("q1", "In other words?")).events == ()


def test_the_next_attempt_gets_the_question_and_the_answer_given_meanwhile() -> None:
    play = calling(by_call())
    next_attempt(play)
    play.answer("ask_q1", "yes")

    told = call(play, by_call("other"), attempt=2)

    assert told.events == (
        AskAttached(
            ask_id="ask_q1",
            task_id="a",
            attempt=2,
            worker_ref="other",
            channel=AskChannel.CALL,
        ),
    )
    assert (play.outbox("a"), play.ask("ask_q1").delivery) == ([], Delivery.QUEUED)
    assert play.ask("ask_q1").status is AskStatus.ANSWERED
    assert take(play).events == (replace(OPENED, attempt=2),)


@pytest.mark.parametrize("report", [by_call(), ProgressMade(text="half")], ids=["ask", "progress"])
def test_a_call_after_the_end_of_its_attempt_is_refused(report: Report) -> None:
    play = calling()
    next_attempt(play)
    with pytest.raises(CrewdError, match="attempt 1 of task a has ended") as refused:
        call(play, report)
    assert refused.value.reason is Reason.TOKEN_INVALID
    play.exit("a", DONE)
    with pytest.raises(CrewdError, match="attempt 2"):
        call(play, report, attempt=2)
