from __future__ import annotations

import json
from dataclasses import replace

import pytest

from crewd.core.errors import CrewdError, Reason
from crewd.core.events import (
    AttemptEnded,
    AttemptStopping,
    RunCancelRequested,
    RunDeleted,
    RunFinished,
)
from crewd.core.model import Survivor
from crewd.core.reports import Verdict
from crewd.core.stimuli import Cancel, Delete
from crewd.core.units import later, seconds
from crewd.core.words import (
    AskStatus,
    Cause,
    OutboxKind,
    Outcome,
    RunStatus,
    TaskStatus,
)
from tests.support.builders import (
    BROKEN,
    DONE,
    NO_RESULT,
    OPERATOR,
    a_careful_spec,
    a_question,
    a_spec,
    a_state,
    a_task,
    a_worker,
    an_exit,
)
from tests.support.facts import (
    cancelled,
    completed,
    ended,
    forget,
    settled,
    skipped,
    stop,
    stopped,
    stopping,
)
from tests.support.play import Play, Told

T = TaskStatus
A, B, C = a_task("a"), a_task("b", "a"), a_task("c")
RUN_CANCELLED = RunFinished(status=RunStatus.CANCELLED, reason="cancelled", message="enough")


def refused(play: Play, reason: Reason, *task_ids: str) -> CrewdError:
    with pytest.raises(CrewdError) as error:
        play.cancel_tasks(*task_ids)
    assert error.value.reason is reason
    return error.value


def test_cancelling_a_run_that_has_not_started_cancels_all_of_it() -> None:
    play = Play.of(a_spec(A, B))

    assert play.cancel() == Told(
        (
            RunCancelRequested(reason="enough"),
            cancelled("a", "enough"),
            cancelled("b", "enough"),
            RUN_CANCELLED,
        )
    )


def test_a_cancelled_run_waits_for_the_proof_that_its_workers_are_gone() -> None:
    play = Play.running(a_spec(A, B))

    assert play.cancel() == Told(
        (RunCancelRequested(reason="enough"), stopping("a"), cancelled("b", "enough")),
        (stop("a"),),
    )
    assert play.run_status() is RunStatus.CANCELLING
    assert play.task("a").status is T.CANCELLING
    assert play.stopped("a") == Told(
        (stopped("a"), cancelled("a", "cancelled"), RUN_CANCELLED), (forget("a"),)
    )


def test_cancel_changes_every_task_that_has_not_ended_and_no_other() -> None:
    before = {status.value: status for status in T}
    state = a_state(a_careful_spec(*(a_task(name) for name in before)), before)
    play = Play(state)

    play.cancel()
    for task_id in sorted(state.live):
        play.stopped(task_id)

    kept = {T.COMPLETED, T.FAILED, T.SKIPPED}
    assert play.statuses() == {n: s if s in kept else T.CANCELLED for n, s in before.items()}
    assert state.run.status is RunStatus.CANCELLED


def test_a_worker_that_listens_is_asked_to_stop_before_it_is_stopped() -> None:
    play = Play.running(a_spec(a_worker("a")))

    told = play.cancel()

    row = play.outbox("a")[-1]
    assert row.kind is OutboxKind.STOP
    assert json.loads(row.body) == {"type": "stop", "reason": "cancelled", "grace_s": 5.0}
    assert told.effects[-1] == stop("a")


def test_cancelling_again_changes_nothing() -> None:
    play = Play.running(a_spec(A))
    play.cancel()

    assert play.cancel("once more") == Told()
    play.stopped("a")
    assert play.cancel("too late") == Told()


def test_a_run_that_has_ended_otherwise_stays_as_it_is() -> None:
    play = Play.running(a_spec(A))
    play.exit("a")

    assert play.cancel() == Told()


def test_a_worker_that_was_done_before_it_was_stopped_completes_its_task() -> None:
    play = Play.running(a_spec(A))
    play.cancel()

    told = play.exit("a")

    assert told.events == (ended("a", DONE), completed("a"), RUN_CANCELLED)


@pytest.mark.parametrize("verdict", [BROKEN, NO_RESULT, replace(BROKEN, retryable=False)])
def test_any_other_end_of_a_cancelled_worker_is_cancelled(verdict: Verdict) -> None:
    play = Play.running(a_spec(a_worker("a")))
    play.cancel()

    play.exit("a", verdict)

    assert play.task("a").status is T.CANCELLED
    assert play.task("a").status_reason == "cancelled"


def test_a_start_that_was_cancelled_before_it_reached_a_process_is_cancelled() -> None:
    play = Play.of(a_spec(A))
    play.dispatch()
    play.cancel()

    told = play.tell(an_exit("a", 1, stopped=True, never_started=True))

    assert told.events[0] == replace(stopped("a"), signal=None, proof="never_started")
    assert play.run_status() is RunStatus.CANCELLED


def test_what_could_not_be_stopped_is_named() -> None:
    play = Play.running(a_spec(A))
    play.cancel()
    stray = Survivor(101, "sleep 1000")

    told = play.stopped("a", stray)

    assert told.events == (
        replace(stopped("a"), proof="", survivors=(stray,)),
        cancelled("a", "cancelled"),
        replace(RUN_CANCELLED, survivors=(stray,)),
    )


def test_force_asks_again_without_grace_and_gives_the_host_five_seconds() -> None:
    play = Play.running(a_spec(A))
    play.cancel()

    told = play.cancel("now", force=True)

    until = later(play.now, seconds(5))
    assert told == Told(
        (
            RunCancelRequested(reason="now", force=True),
            AttemptStopping(task_id="a", attempt=1, cause="cancelled", force_until=until),
        ),
        (stop("a", grace_ms=0),),
    )
    assert play.cancel("now", force=True) == Told()
    assert play.state.next_due() == until


def test_a_forced_stop_ends_without_proof_and_names_the_process() -> None:
    play = Play.running(a_spec(A))
    play.cancel(force=True)
    assert play.wait(4.9) == Told()

    told = play.wait(0.1)

    worker = Survivor(100, "work a")
    end = AttemptEnded(
        task_id="a",
        attempt=1,
        outcome=Outcome.CANCELLED,
        cause=Cause.CANCELLED,
        message="cancelled",
        survivors=(worker,),
    )
    finished = replace(RUN_CANCELLED, survivors=(worker,))
    assert told == Told((end, cancelled("a", "cancelled"), finished), (forget("a"),))
    assert play.stopped("a") == Told((), (forget("a"),))


def test_cancelling_tasks_skips_what_needs_them_and_nothing_else() -> None:
    play = Play.running(a_spec(A, B, C))

    assert play.cancel_tasks("a", "a") == Told((stopping("a"),), (stop("a"),))
    assert play.stopped("a").events == (
        stopped("a"),
        cancelled("a", "cancelled"),
        skipped("b", "needs a (cancelled)"),
    )
    assert play.task("c").status is T.RUNNING
    assert play.exit("c").events[-1] == RunFinished(
        status=RunStatus.CANCELLED, reason="tasks_cancelled", message="some tasks were cancelled"
    )


def test_a_task_that_needs_attention_can_be_cancelled() -> None:
    play = Play.running(a_spec(a_worker("a"), B))
    play.exit("a", NO_RESULT)

    told = play.cancel_tasks("a")

    assert told.events[:2] == (cancelled("a", "not needed"), skipped("b", "needs a (cancelled)"))
    assert play.run_status() is RunStatus.CANCELLED


def test_all_tasks_named_are_cancelled_or_none() -> None:
    play = Play.running(a_spec(A, C))
    play.exit("a")

    assert refused(play, Reason.TASK_STATUS_CONFLICT, "c", "a").metadata["task_id"] == "a"
    assert refused(play, Reason.TASK_NOT_FOUND, "c", "x").metadata["task_id"] == "x"
    assert play.task("c").status is T.RUNNING


def test_a_task_cancelled_while_its_attempt_times_out_is_not_tried_again() -> None:
    play = Play.running(a_spec(a_worker("a", timeout=seconds(60))))
    play.wait(60)

    assert play.cancel_tasks("a") == Told((stopping("a"),), (stop("a"),))

    play.stopped("a")
    assert play.task("a").status is T.CANCELLED
    assert play.run_status() is RunStatus.CANCELLED


def test_the_open_questions_of_a_cancelled_task_are_cancelled() -> None:
    play = Play.running(a_spec(a_worker("a")))
    play.reported("a", a_question())

    told = play.cancel()

    assert settled("ask_q1", AskStatus.CANCELLED) in told.events
    assert play.state.run.open_ask_count == 0


def test_a_cancel_takes_over_a_run_that_was_failing() -> None:
    play = Play.running(a_spec(A, C))
    play.exit("a", replace(BROKEN, retryable=False))

    play.cancel()
    play.stopped("c")

    assert play.run_status() is RunStatus.CANCELLED
    assert play.state.run.cancel_reason == "enough"


def test_a_cancel_breaks_off_a_resume_that_is_still_putting_tasks_back() -> None:
    tasks = [a_task(f"t{n:04}") for n in range(1200)]
    play = Play.of(a_spec(*tasks))
    play.go_on(play.cancel())
    play.resume()

    play.go_on(play.tell(Cancel(reason="enough", actor=OPERATOR)))

    assert set(play.statuses().values()) == {T.CANCELLED}
    assert play.run_status() is RunStatus.CANCELLED


def test_only_a_finished_run_is_deleted() -> None:
    play = Play.running(a_spec(A))

    with pytest.raises(CrewdError) as error:
        play.tell(Delete(actor=OPERATOR))
    assert error.value.reason is Reason.RUN_NOT_FINISHED

    play.exit("a")
    assert play.tell(Delete(actor=OPERATOR, freed_bytes=7)) == Told((RunDeleted(freed_bytes=7),))
    assert play.state.take_changes(1).delete_run
