from __future__ import annotations

from dataclasses import replace

import pytest

from crewd.core.events import RunFinished
from crewd.core.marks import RunStopping
from crewd.core.model import Failure
from crewd.core.spec import OnNeedsAttention
from crewd.core.stimuli import Break, GoOn
from crewd.core.words import Cause, RunStatus, TaskStatus
from tests.support.builders import (
    BROKEN,
    NO_RESULT,
    a_careful_spec,
    a_spec,
    a_state,
    a_task,
    a_worker,
)
from tests.support.facts import (
    attention,
    cancelled,
    ended,
    failed,
    forget,
    run_failed,
    skipped,
    stop,
    stopped,
    stopping,
)
from tests.support.play import Play, Told

HOPELESS = replace(BROKEN, retryable=False)
WHY = HOPELESS.message
T = TaskStatus


def test_a_failed_task_stops_the_others_and_skips_what_never_started() -> None:
    play = Play.of(a_spec(a_task("a"), a_task("b"), a_task("c", "a"), a_task("d")))
    play.dispatch(2)
    play.started("a")
    play.started("b")

    told = play.exit("a", HOPELESS)

    why = f"task a failed: {WHY}"
    assert told == Told(
        (
            ended("a", HOPELESS),
            failed("a", Cause.EXIT, WHY),
            stopping("b", "fail_fast"),
            skipped("c", why, "fail_fast"),
            skipped("d", why, "fail_fast"),
        ),
        (forget("a"), stop("b")),
    )
    assert play.run_status() is RunStatus.RUNNING


def test_a_run_that_fails_fast_ends_when_the_last_worker_is_proven_gone() -> None:
    play = Play.running(a_spec(a_task("a"), a_task("b")))
    play.exit("a", HOPELESS)

    told = play.stopped("b")

    message = "stopped because another task failed"
    assert told == Told(
        (
            stopped("b", message),
            cancelled("b", message, "fail_fast"),
            run_failed("a", Cause.EXIT, WHY),
        ),
        (forget("b"),),
    )


def test_a_worker_that_finishes_while_its_run_fails_keeps_its_result() -> None:
    play = Play.running(a_spec(a_task("a"), a_task("b")))
    play.exit("a", HOPELESS)

    play.exit("b")

    assert play.statuses() == {"a": T.FAILED, "b": T.COMPLETED}
    assert play.run_status() is RunStatus.FAILED


def test_an_attempt_that_failed_while_its_run_stopped_is_not_tried_again() -> None:
    play = Play.running(a_spec(a_task("a"), a_worker("b")))
    play.exit("a", HOPELESS)

    play.exit("b", BROKEN)

    assert play.task("b").status is T.CANCELLED
    assert play.run_status() is RunStatus.FAILED


def test_a_task_in_backoff_is_cancelled_by_a_failure_elsewhere() -> None:
    play = Play.running(a_spec(a_task("a"), a_worker("b")))
    play.exit("b", BROKEN)

    play.exit("a", HOPELESS)

    assert play.statuses() == {"a": T.FAILED, "b": T.CANCELLED}
    assert play.state.next_due() is None


def test_a_careful_run_goes_on_with_what_does_not_need_the_failed_task() -> None:
    tasks = (a_task("a"), a_task("b", "a"), a_task("c", "b"), a_task("d"))
    play = Play.running(a_careful_spec(*tasks))

    told = play.exit("a", HOPELESS)

    assert told == Told(
        (
            ended("a", HOPELESS),
            failed("a", Cause.EXIT, WHY),
            skipped("b", "needs a (failed)"),
            skipped("c", "needs b (skipped)"),
        ),
        (forget("a"),),
    )
    assert play.exit("d").events[-1] == run_failed("a", Cause.EXIT, WHY)


def test_a_skipped_task_names_everything_that_it_needs_and_that_ended_badly() -> None:
    tasks = (a_task("a"), a_task("b"), a_task("c", "a", "b"))
    state = a_state(a_careful_spec(*tasks), {"a": T.FAILED, "b": T.CANCELLED})

    told = Play(state).tell(GoOn())

    assert told.events[0] == skipped("c", "needs a (failed), b (cancelled)")


def test_one_task_that_needs_attention_blocks_the_run_only_when_nothing_else_goes_on() -> None:
    play = Play.running(a_spec(a_worker("a"), a_task("b")))

    told = play.exit("a", NO_RESULT)

    assert told == Told((ended("a", NO_RESULT), attention("a")), (forget("a"),))
    assert play.run_status() is RunStatus.RUNNING
    play.exit("b")
    assert play.run_status() is RunStatus.BLOCKED


def test_a_failure_ends_a_run_whose_last_tasks_wait_for_attention() -> None:
    """Any failed task makes the run failed, so what would wait for ever is skipped."""
    tasks = (a_task("a"), a_worker("b"), a_task("c", "b"))
    play = Play.running(a_careful_spec(*tasks))
    play.exit("b", NO_RESULT)

    (rest,) = play.go_on(play.exit("a", HOPELESS))

    waits = "a task failed, and what is left waits for one that needs attention"
    failure = run_failed("a", Cause.EXIT, WHY)
    assert rest == Told((skipped("c", waits, "fail_fast"), failure))
    assert play.task("b").status is T.NEEDS_ATTENTION


END = {
    "any failed": ({"a": T.FAILED, "b": T.COMPLETED, "c": T.CANCELLED}, RunStatus.FAILED),
    "failed beats attention": ({"a": T.FAILED, "b": T.NEEDS_ATTENTION}, RunStatus.FAILED),
    "attention": ({"a": T.COMPLETED, "b": T.NEEDS_ATTENTION}, RunStatus.BLOCKED),
    "attention beats cancelled": ({"a": T.CANCELLED, "b": T.NEEDS_ATTENTION}, RunStatus.BLOCKED),
    "any cancelled": ({"a": T.COMPLETED, "b": T.CANCELLED}, RunStatus.CANCELLED),
    "cancelled and skipped": ({"a": T.CANCELLED, "b": T.SKIPPED}, RunStatus.CANCELLED),
    "only skipped": ({"a": T.SKIPPED, "b": T.SKIPPED}, RunStatus.FAILED),
    "something completed": ({"a": T.COMPLETED, "b": T.SKIPPED}, RunStatus.COMPLETED),
    "all completed": ({"a": T.COMPLETED, "b": T.COMPLETED}, RunStatus.COMPLETED),
}


@pytest.mark.parametrize("case", END)
def test_the_end_of_a_run_follows_from_its_tasks(case: str) -> None:
    statuses, expected = END[case]
    play = Play(a_state(a_careful_spec(*(a_task(name) for name in statuses)), statuses))

    play.tell(GoOn())

    assert play.run_status() is expected


@pytest.mark.parametrize("status", [T.NEEDS_ATTENTION, T.COMPLETED])
def test_dependents_run_after_attention_where_the_run_says_so(status: TaskStatus) -> None:
    spec = a_spec(a_task("a"), a_task("b", "a"), on_needs_attention=OnNeedsAttention.CONTINUE)

    play = Play(a_state(spec, {"a": status}))

    assert play.state.wanted_slots() == 1


def test_a_run_that_the_daemon_cannot_carry_on_stops_and_names_the_incident() -> None:
    play = Play.running(a_spec(a_task("a"), a_task("b", "a")))

    told = play.tell(Break("incident_1"))

    message = "stopped by an internal error, incident incident_1"
    assert told == Told(
        (stopping("a", "incident"), skipped("b", message, "incident")), (stop("a"),)
    )
    assert play.tell(Break("incident_2")) == Told()
    assert play.stopped("a").events[-1] == RunFinished(
        status=RunStatus.FAILED,
        reason="task_failed",
        message=message,
        error=Failure(reason="task_failed", message=message),
    )


def test_a_mark_is_no_event() -> None:
    play = Play.running(a_spec(a_task("a"), a_task("b")))

    events = play.exit("a", HOPELESS).events

    assert not any(isinstance(event, RunStopping) for event in events)
    assert play.state.run.stopping == "fail_fast"
