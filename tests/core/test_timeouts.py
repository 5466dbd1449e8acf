from __future__ import annotations

from dataclasses import replace

import pytest

from crewd.core.effects import CloseStdin
from crewd.core.events import AttemptEnded, LimitReached, RunFinished, TaskRetryScheduled
from crewd.core.model import Failure, Result, Usage
from crewd.core.reports import Used
from crewd.core.spec import Limits
from crewd.core.units import later, seconds
from crewd.core.words import Cause, Outcome, RunStatus, TaskStatus
from tests.support.builders import (
    DONE,
    NO_RESULT,
    START,
    a_question,
    a_result,
    a_spec,
    a_task,
    a_worker,
    an_exit,
)
from tests.support.facts import completed, forget, skipped, stop, stopping
from tests.support.play import Play, Told

MINUTE = seconds(60)
TIMED = a_worker("a", timeout=MINUTE)
HANDED_IN = replace(DONE, result=Result(text="done"))


def test_an_attempt_that_takes_too_long_is_stopped_and_tried_again() -> None:
    play = Play.running(a_spec(TIMED))
    assert play.wait(59.9) == Told()

    told = play.wait(0.1)
    assert told.events == (stopping("a", "timeout"),)
    assert told.effects[-1] == stop("a")
    assert play.task("a").status is TaskStatus.RUNNING

    end = AttemptEnded(
        task_id="a",
        attempt=1,
        outcome=Outcome.TIMED_OUT,
        cause=Cause.TIMEOUT,
        message="stopped after its timeout",
        retryable=True,
        signal=15,
        proof="stopped",
    )
    again = TaskRetryScheduled(
        task_id="a",
        next_attempt=2,
        not_before=later(play.now, seconds(1)),
        cause=Cause.TIMEOUT,
    )
    assert play.stopped("a") == Told((end, again), (forget("a"),))


def test_a_worker_that_ends_by_itself_at_its_timeout_is_judged_by_what_it_did() -> None:
    play = Play.running(a_spec(TIMED))
    play.wait(60)

    assert play.exit("a").events[1] == completed("a")


def test_the_clock_stands_still_while_a_person_is_asked() -> None:
    play = Play.running(a_spec(TIMED))
    play.wait(40)
    play.reported("a", a_question())
    assert play.state.next_due() is None
    assert play.wait(10_000) == Told()

    play.answer("ask_q1", "yes")

    assert play.state.next_due() == later(play.now, seconds(20))
    assert play.wait(20).events == (stopping("a", "timeout"),)


def test_the_clock_goes_on_only_after_the_last_of_several_answers() -> None:
    play = Play.running(a_spec(TIMED))
    play.reported("a", a_question("q1"), a_question("q2"))

    play.answer("ask_q1", "yes")
    assert play.task("a").status is TaskStatus.WAITING
    assert play.state.next_due() is None
    play.answer("ask_q2", "yes")
    assert play.state.next_due() == later(play.now, MINUTE)


def test_a_worker_that_handed_in_has_five_seconds_to_exit() -> None:
    play = Play.running(a_spec(TIMED))

    assert play.reported("a", a_result()) == Told((), (CloseStdin(task_id="a", attempt=1),))
    assert play.state.next_due() == later(START, seconds(5))

    assert play.wait(5) == Told((stopping("a", "lingering"),), (stop("a"),))
    told = play.tell(an_exit("a", 1, HANDED_IN, stopped=True))
    assert told.events[1] == completed("a")


def test_after_its_result_nothing_times_a_worker_out() -> None:
    play = Play.running(a_spec(TIMED))
    play.reported("a", a_question())
    play.reported("a", a_result())

    play.answer("ask_q1", "yes")

    assert play.attempt("a").deadline is None
    assert play.wait(4.9) == Told()


def test_only_the_first_result_of_an_attempt_counts() -> None:
    play = Play.running(a_spec(TIMED))
    play.reported("a", a_result("first"))

    assert play.reported("a", a_result("second")) == Told()
    assert play.attempt("a").result == Result(text="first")


def limited(used: int, action: str) -> LimitReached:
    return LimitReached(reason="max_tokens", used=used, maximum=100, action=action)


def use(play: Play, **usage: int) -> Told:
    return play.reported("a", Used(usage=Usage(**usage)))


def test_a_limit_is_warned_of_once_at_four_fifths() -> None:
    play = Play.running(a_spec(a_worker("a"), limits=Limits(max_tokens=100)))

    assert limited(79, "warned") not in use(play, input_tokens=79).events
    assert use(play, output_tokens=1).events[1:] == (limited(80, "warned"),)
    assert use(play, output_tokens=1).events[1:] == ()


def test_at_its_limit_the_run_stops_and_fails() -> None:
    tasks = (a_worker("a"), a_task("b", "a"))
    play = Play.running(a_spec(*tasks, limits=Limits(max_tokens=100)))

    told = use(play, input_tokens=60, cache_write_tokens=40, cache_read_tokens=999)

    message = "max_tokens reached: 100 of 100"
    assert told.events[1:] == (
        limited(100, "stopped"),
        stopping("a", "limit"),
        skipped("b", message, "limit"),
    )
    assert play.stopped("a").events[-1] == RunFinished(
        status=RunStatus.FAILED,
        reason="limit_reached",
        message=message,
        error=Failure(reason="limit_reached", message=message, retryable=True),
    )


@pytest.mark.parametrize(
    ("limits", "usage"),
    [
        (Limits(max_turns=3), Usage(turns=3)),
        (Limits(max_cost_micros=10), Usage(cost_micros=12)),
        (Limits(max_tokens=10), Usage(output_tokens=10)),
    ],
)
def test_every_limit_stops_the_run(limits: Limits, usage: Usage) -> None:
    play = Play.running(a_spec(a_worker("a"), limits=limits))

    play.reported("a", Used(usage=usage))

    assert play.state.run.stopping == "limit"


def test_usage_is_added_up_for_attempt_task_and_run() -> None:
    play = Play.running(a_spec(a_worker("a")))

    use(play, input_tokens=1, turns=1)
    use(play, output_tokens=2, turns=1)

    total = Usage(input_tokens=1, output_tokens=2, turns=2)
    assert play.attempt("a").usage == total
    assert play.task("a").usage == total
    assert play.state.run.usage == total


def test_a_run_that_takes_too_long_stops() -> None:
    limits = Limits(max_duration=seconds(60))
    play = Play.of(a_spec(a_task("a"), a_task("b", "a"), limits=limits))
    assert play.state.next_due() is None
    play.wait(1000)
    play.start("a")

    told = play.wait(60)

    reached = LimitReached(reason="max_duration", used=MINUTE, maximum=MINUTE, action="stopped")
    message = "max_duration reached: 60 s of 60 s"
    assert told == Told(
        (reached, stopping("a", "limit"), skipped("b", message, "limit")), (stop("a"),)
    )


def test_the_time_of_a_run_does_not_go_on_while_it_is_blocked() -> None:
    play = Play.running(a_spec(a_worker("a"), limits=Limits(max_duration=MINUTE)))
    play.exit("a", NO_RESULT)
    assert play.run_status() is RunStatus.BLOCKED
    assert play.state.next_due() is None
    play.wait(1000)

    play.retry("a")

    assert play.run_status() is RunStatus.RUNNING
    assert play.state.run.deadline == later(play.now, MINUTE)


def test_retrying_a_task_does_not_lengthen_a_run_that_goes_on() -> None:
    tasks = (a_worker("a"), a_task("b"))
    play = Play.running(a_spec(*tasks, limits=Limits(max_duration=MINUTE)))
    play.exit("a", NO_RESULT)
    play.wait(30)

    play.retry("a")

    assert play.state.run.deadline == later(START, MINUTE)
