from __future__ import annotations

import json

import pytest

from crewd.core.errors import CrewdError, Reason
from crewd.core.events import AskAttached, AskDelivered, AskOpened, WarningRaised
from crewd.core.messages import answer_message
from crewd.core.model import Answer, Ask
from crewd.core.reports import Asked, AskWithdrawn
from crewd.core.spec import OnTimeout
from crewd.core.units import seconds
from crewd.core.words import AskStatus, Delivery, OutboxKind, RunStatus, TaskStatus
from tests.support.builders import (
    BROKEN,
    NO_RESULT,
    OPERATOR,
    RUN_ID,
    START,
    YES_NO,
    a_question,
    a_result,
    a_spec,
    a_worker,
)
from tests.support.facts import settled, write
from tests.support.play import Play, Told


def asking(*questions: Asked) -> Play:
    """A run whose worker has just asked."""
    play = Play.running(a_spec(a_worker("a")))
    play.accepted("a")
    play.reported("a", *questions or (a_question(),))
    return play


def asking_again(play: Play, question: Asked) -> Told:
    """Let the attempt fail, start the next one and have it ask."""
    play.exit("a", BROKEN)
    play.wait(5)
    play.start("a")
    play.accepted("a")
    return play.reported("a", question)


def test_a_question_is_opened_and_its_task_waits() -> None:
    play = Play.running(a_spec(a_worker("a")))
    question = a_question(question="Which?\nThink.", options=YES_NO, timeout=seconds(9))

    told = play.reported("a", question)

    ask = Ask(
        id="ask_q1",
        run_id=RUN_ID,
        task_id="a",
        attempt=1,
        worker_ref="q1",
        title="Which?",
        question="Which?\nThink.",
        options=YES_NO,
        run_title="Measure",
        task_title="a",
        workspace_cwd="/w",
        create_time=START,
    )
    assert told == Told((AskOpened(ask),))
    assert play.task("a").status is TaskStatus.WAITING
    assert play.task("a").open_ask_ids == ("ask_q1",)
    assert play.state.run.open_ask_count == 1
    assert play.run_status() is RunStatus.RUNNING


def test_the_same_question_of_one_attempt_is_the_same_ask() -> None:
    play = asking()

    assert play.reported("a", a_question(ask_id="ask_other")) == Told()
    play.answer("ask_q1", "yes")
    assert play.reported("a", a_question(ask_id="ask_other")) == Told()


def test_an_answer_settles_the_ask_and_goes_to_the_worker() -> None:
    play = asking(a_question(options=YES_NO))

    told = play.answer("ask_q1", "", "yes")

    given = Answer(option_ids=("yes",))
    body = {"type": "answer", "id": "q1", "outcome": "answered", "text": "Yes"}
    told_event = settled(
        "ask_q1", AskStatus.ANSWERED, answer=given, by=OPERATOR, delivery=Delivery.QUEUED
    )
    message = answer_message(play.ask("ask_q1"))
    assert told == Told((told_event,), (write("a", 2, OutboxKind.ANSWER, message, ref="ask_q1"),))
    assert json.loads(message) == {**body, "options": ["yes"], "answered_by": "ann"}
    assert play.task("a").status is TaskStatus.RUNNING
    assert play.log[-1].actor == OPERATOR


def test_a_delivered_answer_is_told_once() -> None:
    play = asking()
    play.answer("ask_q1", "yes")

    delivered = AskDelivered(ask_id="ask_q1", task_id="a", attempt=1, delivery=Delivery.DELIVERED)
    assert play.accepted("a") == Told((delivered,))
    assert play.accepted("a") == Told()
    assert play.outbox("a") == []


def test_a_declined_question_is_told_to_the_worker() -> None:
    play = asking()

    play.answer("ask_q1", "not now", decline=True)

    assert play.ask("ask_q1").status is AskStatus.DECLINED
    body = json.loads(play.outbox("a")[0].body)
    assert (body["outcome"], body["text"]) == ("declined", "not now")


def test_the_first_answer_wins() -> None:
    play = asking()
    play.answer("ask_q1", "yes")

    with pytest.raises(CrewdError) as error:
        play.answer("ask_q1", "no")

    assert error.value.reason is Reason.ASK_SETTLED
    assert error.value.metadata["status"] == "answered"
    assert play.ask("ask_q1").answer == Answer(text="yes")


def test_an_ask_that_is_not_there_cannot_be_answered() -> None:
    with pytest.raises(CrewdError) as error:
        asking().answer("ask_x", "yes")

    assert error.value.reason is Reason.ASK_NOT_FOUND


FREE = a_question()
OPTIONS = a_question(options=YES_NO)
CHOICE = a_question(options=YES_NO, allow_text=False)
SEVERAL = a_question(options=YES_NO, allow_text=False, multiple=True)
ALLOWED = {
    "free text": (FREE, Answer(text="go")),
    "text beside options": (OPTIONS, Answer(text="go")),
    "option and text": (OPTIONS, Answer(option_ids=("yes",), text="go")),
    "one of a choice": (CHOICE, Answer(option_ids=("no",))),
    "several": (SEVERAL, Answer(option_ids=("yes", "no"))),
}
REFUSED = {
    "empty": (FREE, Answer()),
    "empty choice": (CHOICE, Answer()),
    "unknown option": (OPTIONS, Answer(option_ids=("maybe",))),
    "option without any": (FREE, Answer(option_ids=("yes",))),
    "text where none is taken": (CHOICE, Answer(text="go")),
    "text beside a choice": (CHOICE, Answer(option_ids=("yes",), text="go")),
    "two of one": (OPTIONS, Answer(option_ids=("yes", "no"))),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_an_allowed_answer_is_kept_as_it_was_given(case: str) -> None:
    question, given = ALLOWED[case]
    play = asking(question)

    play.answer("ask_q1", given.text, *given.option_ids)

    assert play.ask("ask_q1").answer == given


def test_an_option_named_twice_is_chosen_once() -> None:
    play = asking(CHOICE)

    play.answer("ask_q1", "", "no", "no")

    assert play.ask("ask_q1").answer == Answer(option_ids=("no",))


@pytest.mark.parametrize("case", REFUSED)
def test_any_other_answer_is_refused_and_changes_nothing(case: str) -> None:
    question, given = REFUSED[case]
    play = asking(question)

    with pytest.raises(CrewdError) as error:
        play.answer("ask_q1", given.text, *given.option_ids)

    assert error.value.reason is Reason.ANSWER_NOT_ALLOWED
    choices = "yes, no" if question.options else "free text"
    assert error.value.metadata["choices"] == choices
    assert play.ask("ask_q1").status is AskStatus.OPEN


def test_a_question_stays_open_when_its_attempt_ends() -> None:
    play = asking()

    play.exit("a", BROKEN)

    assert play.ask("ask_q1").status is AskStatus.OPEN
    assert play.task("a").status is TaskStatus.QUEUED
    assert play.task("a").open_ask_ids == ("ask_q1",)


@pytest.mark.parametrize("ref", ["q1", "other"])
def test_the_next_attempt_takes_over_the_open_question(ref: str) -> None:
    """By the worker's own id for it, or by the same words."""
    play = asking()

    told = asking_again(play, a_question(ref, ask_id="ask_new"))

    attached = AskAttached(ask_id="ask_q1", task_id="a", attempt=2, worker_ref=ref)
    assert told == Told((attached,))
    assert play.task("a").status is TaskStatus.WAITING
    play.answer("ask_q1", "yes")
    assert json.loads(play.outbox("a")[0].body)["id"] == ref


def test_an_answer_given_meanwhile_goes_to_the_attempt_that_asks_again() -> None:
    play = asking()
    play.exit("a", BROKEN)
    told = play.answer("ask_q1", "yes")
    given = Answer(text="yes")
    assert told == Told((settled("ask_q1", AskStatus.ANSWERED, answer=given, by=OPERATOR),))
    play.wait(5)
    play.start("a")

    told = play.reported("a", a_question())

    message = answer_message(play.ask("ask_q1"))
    assert told == Told(
        (AskAttached(ask_id="ask_q1", task_id="a", attempt=2, worker_ref="q1"),),
        (write("a", 2, OutboxKind.ANSWER, message, ref="ask_q1", attempt=2),),
    )
    assert play.task("a").status is TaskStatus.RUNNING


def test_other_words_are_another_question() -> None:
    play = asking()

    told = asking_again(play, a_question("q2", question="Really?"))

    assert isinstance(told.events[0], AskOpened)
    assert play.state.run.open_ask_count == 2


def test_an_answer_that_the_worker_did_not_live_to_get_is_told() -> None:
    play = asking()
    play.answer("ask_q1", "yes")

    told = play.exit("a", BROKEN)

    lost = AskDelivered(ask_id="ask_q1", task_id="a", attempt=1, delivery=Delivery.UNDELIVERABLE)
    assert told.events[0] == lost
    assert play.ask("ask_q1").delivery is Delivery.UNDELIVERABLE
    assert play.outbox("a") == []


def test_a_question_nobody_asks_any_more_is_superseded_when_its_task_completes() -> None:
    play = asking()
    play.exit("a", BROKEN)
    play.wait(5)
    play.start("a")

    told = play.exit("a")

    assert settled("ask_q1", AskStatus.SUPERSEDED) in told.events
    assert play.run_status() is RunStatus.COMPLETED


def test_a_withdrawn_question_is_superseded_and_its_worker_goes_on() -> None:
    play = asking()

    told = play.reported("a", AskWithdrawn("q1"))

    assert told.events == (settled("ask_q1", AskStatus.SUPERSEDED, delivery=Delivery.QUEUED),)
    assert play.task("a").status is TaskStatus.RUNNING
    assert play.reported("a", AskWithdrawn("q1")) == Told()


def test_what_an_event_says_of_an_ask_does_not_change_with_it() -> None:
    play = Play.running(a_spec(a_worker("a")))

    told = play.reported("a", a_question(), AskWithdrawn("q1"))

    assert isinstance(told.events[0], AskOpened)
    assert told.events[0].ask.status is AskStatus.OPEN


def test_a_run_that_only_waits_for_an_answer_goes_on_running() -> None:
    play = asking()
    play.exit("a", NO_RESULT)
    assert play.run_status() is RunStatus.RUNNING
    assert not play.state.is_settled

    play.answer("ask_q1", "yes")

    assert play.run_status() is RunStatus.BLOCKED


def test_a_default_that_is_no_option_is_warned_of_and_the_question_waits() -> None:
    play = Play.running(a_spec(a_worker("a")))
    question = a_question(
        options=YES_NO, timeout=seconds(9), on_timeout=OnTimeout.DEFAULT_OPTION, default="x"
    )

    told = play.reported("a", question)

    message = "no option has the id 'x', so the question waits for a person"
    warning = WarningRaised(code="default_option_missing", message=message, task_id="a", attempt=1)
    assert told.events[0] == warning
    assert play.ask("ask_q1").on_timeout is OnTimeout.WAIT
    assert play.state.next_due() is None


def test_an_answer_after_the_result_is_kept_but_not_sent() -> None:
    """The worker's stdin was closed when it handed in."""
    play = asking()
    play.reported("a", a_result())

    told = play.answer("ask_q1", "yes")

    assert told.effects == ()
    assert play.ask("ask_q1").delivery is Delivery.NONE
