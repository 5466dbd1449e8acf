from __future__ import annotations

import pytest

from crewd.core.model import Actor, Answer
from crewd.core.spec import AskPolicy, OnTimeout
from crewd.core.units import later, seconds
from crewd.core.words import (
    ActorKind,
    AskStatus,
    Cause,
    Delivery,
    Outcome,
    RunStatus,
    TaskStatus,
)
from tests.support.builders import (
    BROKEN,
    NO_RESULT,
    YES_NO,
    a_question,
    a_spec,
    a_worker,
    host_ready,
)
from tests.support.facts import failed, run_failed, settled, stop, stopping
from tests.support.play import Play, Told

UNHEARD = "nobody answered its question in time"


def asking(on_timeout: OnTimeout) -> Play:
    """A run whose worker waits ten seconds for an answer."""
    play = Play.running(a_spec(a_worker("a")))
    question = a_question(options=YES_NO, timeout=seconds(10), on_timeout=on_timeout, default="no")
    play.reported("a", question)
    return play


@pytest.mark.parametrize(
    ("on_timeout", "outcome", "given"),
    [
        (OnTimeout.CONTINUE, AskStatus.TIMED_OUT, None),
        (OnTimeout.DECLINE, AskStatus.DECLINED, None),
        (OnTimeout.DEFAULT_OPTION, AskStatus.ANSWERED, Answer(option_ids=("no",))),
    ],
)
def test_silence_is_answered_as_the_question_says(
    on_timeout: OnTimeout, outcome: AskStatus, given: Answer | None
) -> None:
    play = asking(on_timeout)
    assert play.wait(9.9) == Told()

    told = play.wait(0.1)

    by = Actor(ActorKind.POLICY, f"on_timeout={on_timeout}")
    told_event = settled("ask_q1", outcome, answer=given, by=by, delivery=Delivery.QUEUED)
    assert told.events == (told_event,)
    assert play.log[-1].actor == by
    assert play.task("a").status is TaskStatus.RUNNING
    assert play.wait(100) == Told()


def test_a_question_without_a_policy_waits_for_ever() -> None:
    play = asking(OnTimeout.WAIT)

    assert play.state.next_due() is None
    assert play.wait(10_000_000) == Told()


def test_silence_fails_the_task_where_the_question_says_so() -> None:
    play = asking(OnTimeout.FAIL_TASK)

    told = play.wait(10)

    assert play.ask("ask_q1").status is AskStatus.TIMED_OUT
    assert told.events[-1] == stopping("a", "ask_timeout")
    assert told.effects[-1] == stop("a")
    play.accepted("a")
    assert play.stopped("a").events[1:] == (
        failed("a", Cause.TIMEOUT, UNHEARD),
        run_failed("a", Cause.TIMEOUT, UNHEARD),
    )


def test_silence_fails_a_task_that_waits_for_its_next_attempt() -> None:
    play = asking(OnTimeout.FAIL_TASK)
    play.exit("a", BROKEN)
    play.now = later(play.now, seconds(10))

    told = play.wait(0)

    assert failed("a", Cause.TIMEOUT, UNHEARD) in told.events
    assert play.run_status() is RunStatus.FAILED


def test_silence_fails_a_task_that_needs_attention() -> None:
    play = asking(OnTimeout.FAIL_TASK)
    play.exit("a", NO_RESULT)

    play.wait(10)

    assert play.task("a").status is TaskStatus.FAILED
    assert play.run_status() is RunStatus.FAILED


def test_a_task_that_silence_failed_is_not_tried_again_after_a_loss_of_the_host() -> None:
    play = asking(OnTimeout.FAIL_TASK)
    play.wait(10)

    play.tell(host_ready("epoch_2"))

    assert play.attempt("a").outcome is Outcome.FAILED
    assert play.task("a").status is TaskStatus.FAILED


def test_an_answer_in_time_disarms_the_timeout() -> None:
    play = asking(OnTimeout.FAIL_TASK)

    play.answer("ask_q1", "", "yes")

    assert play.state.next_due() is None
    assert play.wait(10) == Told()


def test_a_question_that_was_taken_over_keeps_its_deadline() -> None:
    play = asking(OnTimeout.CONTINUE)
    play.exit("a", BROKEN)
    play.wait(5)
    play.start("a")
    play.reported("a", a_question(options=YES_NO))

    play.wait(5)

    assert play.ask("ask_q1").status is AskStatus.TIMED_OUT
    assert play.task("a").status is TaskStatus.RUNNING


def test_a_question_that_says_nothing_follows_the_policy_of_its_run() -> None:
    policy = AskPolicy(
        on_timeout=OnTimeout.DEFAULT_OPTION, timeout=seconds(3), default_option_id="yes"
    )
    play = Play.running(a_spec(a_worker("a"), asks=policy))
    play.reported("a", a_question(options=YES_NO))

    play.wait(3)

    assert play.ask("ask_q1").answer == Answer(option_ids=("yes",))
