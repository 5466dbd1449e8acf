from __future__ import annotations

from dataclasses import replace

import pytest

from crewd.core.events import AttemptEnded, TaskHeld, TaskRequeued, TaskRetryScheduled
from crewd.core.reports import Verdict
from crewd.core.retry import HOPELESS, jitter_fraction, may_retry, retry_delay
from crewd.core.spec import RetryPolicy
from crewd.core.stimuli import Refusal, WorkerRefused
from crewd.core.units import SECOND, Instant, later, seconds
from crewd.core.words import Cause, Outcome, RunStatus, TaskStatus
from tests.support.builders import (
    BROKEN,
    RUN_ID,
    START,
    THRICE,
    a_spec,
    a_start,
    a_task,
)
from tests.support.facts import ended, failed, forget, run_failed, starting
from tests.support.play import Play, Told

TASK = a_task("a", retry=THRICE)
WHY = BROKEN.message


def again(
    next_attempt: int, not_before: Instant, cause: Cause, *, spends: bool = True
) -> TaskRetryScheduled:
    return TaskRetryScheduled(
        task_id="a",
        next_attempt=next_attempt,
        not_before=not_before,
        cause=cause,
        spends=spends,
    )


def held(until: Instant) -> TaskHeld:
    return TaskHeld(task_id="a", reason="backoff", until=until)


def test_a_failed_attempt_is_recorded_and_its_task_goes_back_to_the_queue() -> None:
    play = Play.running(a_spec(TASK))

    told = play.exit("a", BROKEN)

    due = later(START, seconds(1))
    assert told == Told((ended("a", BROKEN), again(2, due, Cause.EXIT)), (forget("a"),))
    assert play.task("a").status is TaskStatus.QUEUED
    assert play.run_status() is RunStatus.RUNNING
    assert play.state.next_due() == due


def test_the_next_attempt_waits_for_the_end_of_its_backoff() -> None:
    play = Play.running(a_spec(TASK))
    play.exit("a", BROKEN)

    assert play.wait(0.9) == Told()
    assert play.dispatch() == Told()
    assert play.wait(0.1) == Told()
    assert play.dispatch() == Told((starting(TASK, 2),), (a_start(TASK, 2),))


def test_a_backoff_of_more_than_a_second_is_told() -> None:
    play = Play.running(a_spec(TASK))
    play.exit("a", BROKEN)
    play.wait(1)
    play.start("a")

    told = play.exit("a", BROKEN)

    due = later(play.now, seconds(2))
    assert told.events == (ended("a", BROKEN, 2), again(3, due, Cause.EXIT), held(due))


def test_the_task_fails_when_its_attempts_are_used_up() -> None:
    play = Play.running(a_spec(TASK))
    for wait in (1, 2):
        play.exit("a", BROKEN)
        play.wait(wait)
        play.start("a")

    told = play.exit("a", BROKEN)

    assert told.events == (
        ended("a", BROKEN, 3),
        failed("a", Cause.EXIT, WHY, retryable=True),
        run_failed("a", Cause.EXIT, WHY, retryable=True),
    )


def test_a_worker_that_says_retrying_is_no_use_is_believed() -> None:
    play = Play.running(a_spec(TASK))

    play.exit("a", replace(BROKEN, retryable=False))

    assert play.run_status() is RunStatus.FAILED


@pytest.mark.parametrize("cause", sorted(HOPELESS))
def test_what_the_same_attempt_would_only_meet_again_is_not_retried(cause: Cause) -> None:
    assert not may_retry(THRICE, 1, retryable=True, cause=cause)


def test_jitter_spreads_retries_and_is_the_same_every_time() -> None:
    fractions = [jitter_fraction(RUN_ID, f"t{n}", 1) for n in range(100)]

    assert fractions == [jitter_fraction(RUN_ID, f"t{n}", 1) for n in range(100)]
    assert min(fractions) < 0.1
    assert max(fractions) > 0.9


def test_a_delay_stays_within_its_jitter_and_its_maximum() -> None:
    policy = RetryPolicy(backoff=seconds(1), max_backoff=seconds(60), jitter=0.3)

    assert retry_delay(policy, 1, 0.0) == seconds(0.7)
    assert retry_delay(policy, 1, 1.0) == seconds(1.3)
    assert retry_delay(policy, 500, 0.5) == seconds(60)
    assert retry_delay(replace(policy, jitter=3.0), 1, 0.0) == 0


def test_the_decision_uses_the_jitter_of_its_own_attempt() -> None:
    task = a_task("a", retry=RetryPolicy(jitter=0.3))
    play = Play.running(a_spec(task))

    told = play.exit("a", BROKEN)

    delay = retry_delay(task.retry, 1, jitter_fraction(RUN_ID, "a", 1))
    assert again(2, later(START, delay), Cause.EXIT) in told.events


def refusal(play: Play, kind: Refusal) -> Told:
    number = play.task("a").attempt
    return play.tell(WorkerRefused(task_id="a", attempt=number, kind=kind, message="no"))


def never_started(cause: Cause, *, retryable: bool, attempt: int = 1) -> AttemptEnded:
    return AttemptEnded(
        task_id="a",
        attempt=attempt,
        outcome=Outcome.FAILED,
        cause=cause,
        message="no",
        retryable=retryable,
        proof="never_started",
    )


def test_a_machine_short_of_processes_spends_no_attempt() -> None:
    play = Play.of(a_spec(TASK))

    for number in range(1, 6):
        play.dispatch()
        due = later(play.now, seconds(8))
        assert refusal(play, Refusal.TRANSIENT) == Told(
            (
                never_started(Cause.SPAWN, retryable=True, attempt=number),
                again(number + 1, due, Cause.SPAWN, spends=False),
                held(due),
            ),
            (forget("a", number),),
        )
        play.wait(8)

    assert play.task("a").spent_attempts == 0


def test_any_other_failure_to_start_a_process_spends_one() -> None:
    play = Play.of(a_spec(TASK))
    play.dispatch()

    refusal(play, Refusal.SPAWN)

    assert play.task("a").spent_attempts == 1
    assert play.task("a").status is TaskStatus.QUEUED


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        (Refusal.CWD_MISSING, Cause.WORKSPACE_MISSING),
        (Refusal.EXECUTABLE_MISSING, Cause.EXECUTABLE_MISSING),
        (Refusal.NOT_EXECUTABLE, Cause.EXECUTABLE_MISSING),
        (Refusal.ENVIRONMENT_MISSING, Cause.SPAWN),
    ],
)
def test_what_is_missing_fails_the_task_at_once(kind: Refusal, cause: Cause) -> None:
    play = Play.of(a_spec(TASK))
    play.dispatch()

    assert refusal(play, kind) == Told(
        (
            never_started(cause, retryable=False),
            failed("a", cause, "no"),
            run_failed("a", cause, "no"),
        ),
        (forget("a"),),
    )


def test_a_persons_retry_gives_the_task_all_its_attempts_again() -> None:
    play = Play.running(a_spec(a_task("a", retry=replace(THRICE, max_attempts=1))))
    play.exit("a", BROKEN)

    told = play.retry("a")

    assert told.events[1] == TaskRequeued(task_id="a", cause="retry")
    play.start("a")
    assert play.task("a").attempt == 2
    assert play.task("a").spent_attempts == 0


def test_a_rate_limit_is_waited_for_and_costs_no_attempt() -> None:
    limited = Verdict(
        outcome=Outcome.FAILED, cause=Cause.THROTTLED, message="429: slow down", retryable=True
    )
    policy = RetryPolicy(max_attempts=2, backoff=seconds(1), jitter=0)
    play = Play.running(a_spec(a_task("a", retry=policy)))

    waits: list[float] = []
    for _ in range(7):
        told = play.exit("a", limited)
        scheduled = [e for e in told.events if isinstance(e, TaskRetryScheduled)]
        if not scheduled:
            break
        waits.append((scheduled[0].not_before - play.now) / SECOND)
        play.wait(300)
        play.start("a")

    expected = [15, 30, 60, 120, 240]
    assert all(0.7 <= w / e <= 1.3 for w, e in zip(waits[:5], expected, strict=True))
    assert len(waits) == 6, "after that each costs an attempt"
    assert play.task("a").status is TaskStatus.FAILED
    assert play.task("a").spent_attempts == 1


def test_a_task_that_is_tried_once_does_not_wait_for_a_rate_limit() -> None:
    limited = Verdict(outcome=Outcome.FAILED, cause=Cause.THROTTLED, retryable=True)
    play = Play.running(a_spec(a_task("a", retry=RetryPolicy(max_attempts=1))))

    play.exit("a", limited)

    assert play.task("a").status is TaskStatus.FAILED
