from __future__ import annotations

from dataclasses import replace

import pytest

from crewd.core.effects import Continue
from crewd.core.errors import CrewdError, Reason
from crewd.core.events import RunBlocked, RunFinished, RunResumed, TaskFinished, TaskRequeued
from crewd.core.model import Failure, Result
from crewd.core.spec import FailureMode, Limits, OnNeedsAttention
from crewd.core.stimuli import Resolution
from crewd.core.units import later, seconds
from crewd.core.words import AskStatus, RunStatus, TaskStatus
from tests.support.builders import (
    BROKEN,
    NO_RESULT,
    OPERATOR,
    a_careful_spec,
    a_question,
    a_spec,
    a_state,
    a_task,
    a_worker,
)
from tests.support.facts import attention, ended, forget, run_completed, skipped
from tests.support.play import Play, Told

T = TaskStatus
HOPELESS = replace(BROKEN, retryable=False)
A, B, C = a_worker("a"), a_task("b", "a"), a_task("c")


def blocked() -> Play:
    """A run that waits for a person to say what becomes of `a`."""
    play = Play.running(a_spec(A, B))
    play.exit("a", NO_RESULT)
    return play


def refusal(play: Play, *task_ids: str) -> Reason:
    with pytest.raises(CrewdError) as error:
        play.retry(*task_ids)
    return error.value.reason


def resumed(cause: str, *task_ids: str, requeueing: str = "dependents") -> RunResumed:
    return RunResumed(cause=cause, requeued_task_ids=task_ids, requeueing=requeueing)


def test_a_run_is_blocked_by_a_worker_that_handed_in_nothing() -> None:
    play = Play.running(a_spec(A, B))

    told = play.exit("a", NO_RESULT)

    detail = "a ended without handing in a result: resolve or retry"
    event = RunBlocked(reason="needs_attention", detail=detail, task_ids=("a",))
    assert told == Told((ended("a", NO_RESULT), attention("a"), event), (forget("a"),))
    assert play.statuses() == {"a": T.NEEDS_ATTENTION, "b": T.QUEUED}
    assert play.state.is_settled


def test_accepting_it_completes_the_task_and_lets_its_dependents_run() -> None:
    play = blocked()

    told = play.resolve("a", Resolution.ACCEPT, "good enough")

    settled = TaskFinished(
        task_id="a",
        status=T.COMPLETED,
        reason="resolved",
        message="good enough",
        result=Result(),
        note="good enough",
    )
    assert told == Told((resumed("resolve"), settled))
    assert play.log[-1].actor == OPERATOR
    play.start("b")
    assert play.exit("b").events[-1] == run_completed()


def test_failing_it_fails_the_run() -> None:
    play = blocked()

    told = play.resolve("a", Resolution.FAIL)

    error = Failure(reason="resolved", message="seen", task_id="a")
    assert told.events == (
        RunResumed(cause="resolve"),
        TaskFinished(
            task_id="a",
            status=T.FAILED,
            reason="resolved",
            message="seen",
            error=error,
            note="seen",
        ),
        skipped("b", "needs a (failed)"),
        RunFinished(
            status=RunStatus.FAILED,
            reason="task_failed",
            message="task a failed: seen",
            error=replace(error, message="task a failed: seen"),
            failed_task_ids=("a",),
        ),
    )


def test_skipping_it_skips_its_dependents() -> None:
    play = Play.running(a_spec(A, B, C))
    play.exit("c")
    play.exit("a", NO_RESULT)

    play.resolve("a", Resolution.SKIP)

    assert play.statuses() == {"a": T.SKIPPED, "b": T.SKIPPED, "c": T.COMPLETED}
    assert play.run_status() is RunStatus.COMPLETED


def test_retrying_it_runs_it_again() -> None:
    play = blocked()

    assert play.retry("a") == Told(
        (resumed("retry", "a"), TaskRequeued(task_id="a", cause="retry"))
    )
    assert play.run_status() is RunStatus.RUNNING
    play.start("a")
    assert play.task("a").attempt == 2


def test_only_a_task_that_ended_without_completing_is_resolved_or_retried() -> None:
    play = Play.running(a_spec(A, B, C))
    play.exit("c")

    for task_id in ("a", "b", "c"):
        with pytest.raises(CrewdError) as error:
            play.resolve(task_id, Resolution.ACCEPT)
        assert error.value.reason is Reason.TASK_STATUS_CONFLICT
        assert refusal(play, task_id) is Reason.TASK_STATUS_CONFLICT
    assert refusal(play, "x") is Reason.TASK_NOT_FOUND
    assert refusal(play) is Reason.RUN_STATUS_CONFLICT


def test_a_resolution_that_changes_nothing_is_refused() -> None:
    play = blocked()
    play.resolve("a", Resolution.FAIL)

    with pytest.raises(CrewdError) as error:
        play.resolve("a", Resolution.FAIL)

    assert error.value.reason is Reason.TASK_STATUS_CONFLICT


def test_accepting_a_failed_task_of_a_finished_run_goes_on_with_what_it_held_up() -> None:
    play = Play.running(a_careful_spec(A, B, a_task("d", "b")))
    play.exit("a", HOPELESS)
    assert play.run_status() is RunStatus.FAILED

    play.resolve("a", Resolution.ACCEPT)

    assert play.statuses() == {"a": T.COMPLETED, "b": T.QUEUED, "d": T.QUEUED}
    assert play.run_status() is RunStatus.RUNNING
    play.start("b")


def test_failing_a_task_of_a_failed_run_starts_nothing_that_the_failure_stopped() -> None:
    spec = a_spec(a_task("a"), a_task("b"), a_task("n"))
    statuses = {"a": T.FAILED, "b": T.SKIPPED, "n": T.NEEDS_ATTENTION}
    state = a_state(spec, statuses, run_status=RunStatus.FAILED, reasons={"b": "fail_fast"})
    play = Play(state)

    play.resolve("n", Resolution.FAIL)

    assert play.statuses() == {"a": T.FAILED, "b": T.SKIPPED, "n": T.FAILED}
    assert play.run_status() is RunStatus.FAILED


def test_a_retry_brings_back_what_its_failure_stopped_and_skipped() -> None:
    play = Play.running(a_spec(a_task("a"), B, C, limits=Limits(max_concurrent_workers=1)))
    play.exit("a", HOPELESS)
    assert play.statuses() == {"a": T.FAILED, "b": T.SKIPPED, "c": T.SKIPPED}

    told = play.retry("a")

    assert told.events == (
        resumed("retry", "a"),
        TaskRequeued(task_id="a", cause="retry"),
        TaskRequeued(task_id="c", cause="resume"),
        TaskRequeued(task_id="b", cause="resume"),
    )
    assert play.state.run.resume_count == 1
    assert play.state.run.error is None


def test_a_resume_puts_back_everything_that_is_not_completed() -> None:
    statuses = {status.value: status for status in (T.COMPLETED, T.FAILED, T.CANCELLED, T.SKIPPED)}
    spec = a_careful_spec(*(a_task(name) for name in statuses), a_task("n"))
    play = Play(a_state(spec, {**statuses, "n": T.NEEDS_ATTENTION}, run_status=RunStatus.FAILED))

    told = play.resume()

    back = ("failed", "cancelled", "skipped", "n")
    requeued = (TaskRequeued(task_id=name, cause="resume") for name in back)
    assert told == Told((resumed("resume", requeueing="all"), *requeued))
    assert play.run_status() is RunStatus.RUNNING
    assert play.state.wanted_slots() == 4


def test_a_run_without_anything_to_go_on_with_is_not_resumed() -> None:
    play = Play.running(a_spec(a_task("a")))
    play.exit("a")

    with pytest.raises(CrewdError) as error:
        play.resume()
    assert error.value.reason is Reason.RUN_STATUS_CONFLICT
    assert play.run_status() is RunStatus.COMPLETED


@pytest.mark.parametrize("stopping", ["cancel", "fail_fast"])
def test_nothing_is_reopened_while_the_run_still_stops(stopping: str) -> None:
    play = Play.running(a_spec(a_task("a"), C))
    if stopping == "cancel":
        play.cancel()
    else:
        play.exit("a", HOPELESS)

    with pytest.raises(CrewdError) as error:
        play.resume()
    assert error.value.reason is Reason.RUN_STATUS_CONFLICT
    assert refusal(play, "a") is Reason.RUN_STATUS_CONFLICT


def test_a_resumed_run_starts_its_time_anew() -> None:
    play = Play.running(a_spec(a_task("a"), limits=Limits(max_duration=seconds(60))))
    play.cancel()
    play.stopped("a")
    assert play.state.next_due() is None
    play.wait(1000)

    play.resume()

    assert play.state.next_due() == later(play.now, seconds(60))
    assert play.wait(59) == Told()


def test_a_wide_resume_starts_nothing_until_all_is_back() -> None:
    names = [f"t{n:04}" for n in range(1200)]
    play = Play.of(a_spec(*(a_task(name) for name in names)))
    play.go_on(play.cancel())

    told = play.resume()
    assert (len(told.events), told.effects) == (501, (Continue(),))
    assert play.dispatch(4).events[:1] == (TaskRequeued(task_id="t0500", cause="resume"),)
    assert play.state.wanted_slots() == 0
    rest = play.go_on(Told((), (Continue(),)))

    assert [len(told.events) for told in rest] == [200]
    assert play.state.wanted_slots() == 4


def test_a_retry_does_not_cut_short_a_resume_that_is_still_putting_tasks_back() -> None:
    names = [f"t{n:04}" for n in range(1200)]
    play = Play.of(a_spec(*(a_task(name) for name in names)))
    play.go_on(play.cancel())
    play.resume()

    play.go_on(play.retry("t1100"))

    assert set(play.statuses().values()) == {T.QUEUED}


def test_a_retry_names_only_the_first_of_many_tasks() -> None:
    names = [f"t{n:03}" for n in range(100)]
    play = Play.of(a_spec(*(a_task(name) for name in names)))
    play.go_on(play.cancel())

    told = play.retry(*names)

    assert told.events[0] == resumed("retry", *names[:20])


def test_a_question_of_a_resolved_task_is_superseded() -> None:
    play = Play.running(a_spec(A))
    play.reported("a", a_question())
    play.exit("a", NO_RESULT)

    play.resolve("a", Resolution.ACCEPT)

    assert play.ask("ask_q1").status is AskStatus.SUPERSEDED
    assert play.run_status() is RunStatus.COMPLETED


def test_a_run_that_fails_does_not_wait_for_the_question_of_a_worker_that_is_gone() -> None:
    play = Play.running(a_spec(A, C))
    play.reported("a", a_question())
    play.exit("a", NO_RESULT)

    play.exit("c", HOPELESS)

    assert play.ask("ask_q1").status is AskStatus.CANCELLED
    assert play.run_status() is RunStatus.FAILED


def test_where_attention_is_no_obstacle_its_dependents_run_and_the_run_blocks_after_them() -> None:
    spec = replace(a_spec(A, B), on_needs_attention=OnNeedsAttention.CONTINUE)
    play = Play.running(spec)
    play.exit("a", NO_RESULT)
    play.start("b")

    play.exit("b")

    assert play.run_status() is RunStatus.BLOCKED


def test_failing_what_dependents_went_on_without_skips_those_that_wait() -> None:
    spec = replace(
        a_spec(A, B, limits=Limits(max_concurrent_workers=1)),
        on_needs_attention=OnNeedsAttention.CONTINUE,
        failure_mode=FailureMode.CONTINUE,
    )
    play = Play.running(spec)
    play.exit("a", NO_RESULT)
    assert play.state.ready == {"b"}

    play.resolve("a", Resolution.FAIL)

    assert play.state.ready == set()
    assert play.task("b").status is T.SKIPPED
