from __future__ import annotations

import pytest

from crewd.core.effects import CloseStdin, WriteWorker
from crewd.core.events import AttemptEnded, AttemptStarted, RunRecovered, TaskRetryScheduled
from crewd.core.spec import TaskSpec
from crewd.core.state import RunState
from crewd.core.stimuli import HostGone, LiveJob
from crewd.core.units import later, seconds
from crewd.core.words import Cause, Outcome, RunStatus, TaskStatus
from tests.support.builders import (
    HOST,
    a_result,
    a_spec,
    a_start,
    a_task,
    a_worker,
    an_exit,
    host_ready,
)
from tests.support.facts import cancelled, completed, forget, stop, stopped
from tests.support.play import Play, Told
from tests.support.rows import Rows

TASK = a_task("a", retry=a_worker("a").retry)
LOST = AttemptEnded(
    task_id="a",
    attempt=1,
    outcome=Outcome.LOST,
    cause=Cause.LOST,
    message="the process that ran it was lost before it ended",
    retryable=True,
    proof="host_lost",
)


def starting(task: TaskSpec = TASK) -> Play:
    """A run that has told nobody yet what it wants started."""
    play = Play.of(a_spec(task))
    play.dispatch()
    return play


def again(play: Play) -> TaskRetryScheduled:
    return TaskRetryScheduled(
        task_id="a",
        next_attempt=2,
        not_before=later(play.now, seconds(1)),
        cause=Cause.LOST,
    )


def live(stdin_seq: int = 0) -> dict[str, LiveJob]:
    return {"a/1": LiveJob(pid=100, stdin_seq=stdin_seq, stopping=False)}


def test_the_same_host_starts_what_it_never_heard_of() -> None:
    play = starting()

    assert play.tell(host_ready()) == Told((), (a_start(TASK),))


def test_what_is_started_again_is_told_its_task_again() -> None:
    play = starting(a_worker("a"))

    told = play.tell(host_ready())

    (row,) = play.outbox("a")
    assert told == Told((), (a_start(a_worker("a")), WriteWorker(row)))


def test_what_another_host_was_to_start_is_lost_and_spends_an_attempt() -> None:
    play = starting()

    told = play.tell(host_ready("epoch_2"))

    recovered = RunRecovered(lost=("a/1",))
    assert told == Told((LOST, again(play), recovered), (forget("a"),))
    assert play.task("a").spent_attempts == 1
    play.wait(1)
    assert play.dispatch().effects == (a_start(TASK, 2, "epoch_2"),)


def test_a_worker_that_the_same_host_ran_and_no_longer_has_is_lost() -> None:
    play = starting()
    play.started("a")

    assert LOST in play.tell(host_ready()).events


@pytest.mark.parametrize("epoch", ["epoch_1", "epoch_2"])
def test_an_exit_that_the_host_has_is_waited_for(epoch: str) -> None:
    play = starting()
    play.started("a")

    assert play.tell(host_ready(epoch, exiting=frozenset({"a/1"}))) == Told()
    assert play.exit("a").events[1] == completed("a")


def test_a_live_worker_goes_on() -> None:
    play = starting()
    play.started("a")

    assert play.tell(host_ready(live=live())) == Told()
    told = play.tell(host_ready(live=live(), recovery=True))
    assert told == Told((RunRecovered(adopted=("a/1",)),))


def test_a_start_whose_answer_was_lost_is_told_now() -> None:
    play = starting()

    started = AttemptStarted(task_id="a", attempt=1, pid=100, host=HOST)
    assert play.tell(host_ready(live=live())) == Told((started,))


def test_messages_that_the_host_does_not_have_are_sent_again() -> None:
    play = starting(a_worker("a"))
    play.started("a")
    play.cancel()
    task, goodbye = play.outbox("a")

    told = play.tell(host_ready(live=live(stdin_seq=1)))

    assert told == Told((), (WriteWorker(goodbye), stop("a")))
    assert play.outbox("a") == [goodbye]
    assert task.seq == 1


def test_a_stop_is_sent_again_with_the_force_it_had() -> None:
    play = starting()
    play.started("a")
    play.cancel(force=True)

    told = play.tell(host_ready(live=live()))

    assert told == Told((), (stop("a", grace_ms=0),))


def test_stdin_is_closed_again_for_a_worker_that_handed_in() -> None:
    play = starting(a_worker("a"))
    play.started("a")
    play.reported("a", a_result())

    told = play.tell(host_ready(live=live(stdin_seq=1)))

    assert told == Told((), (CloseStdin(task_id="a", attempt=1),))


def test_a_stop_of_what_was_never_started_needs_no_more_proof() -> None:
    play = starting()
    play.cancel()

    told = play.tell(host_ready())

    end = AttemptEnded(
        task_id="a",
        attempt=1,
        outcome=Outcome.CANCELLED,
        cause=Cause.CANCELLED,
        message="cancelled",
        proof="never_started",
    )
    assert told.events[:2] == (end, cancelled("a", "cancelled"))
    assert play.run_status() is RunStatus.CANCELLED


def test_a_cancelled_worker_that_went_with_its_host_is_cancelled() -> None:
    play = starting()
    play.started("a")
    play.cancel()

    play.tell(host_ready("epoch_2"))

    assert play.attempt("a").outcome is Outcome.CANCELLED
    assert play.task("a").status is TaskStatus.CANCELLED


def test_while_the_host_is_gone_nothing_is_lost_and_nothing_starts() -> None:
    play = Play.running(a_spec(TASK, a_task("b"), a_task("c", "b")))
    play.exit("b")

    assert play.tell(HostGone()) == Told()
    assert play.state.live == {"a"}
    assert play.state.wanted_slots() == 0
    assert play.tell(host_ready(live=live())) == Told()
    assert play.state.wanted_slots() == 1


def test_an_exit_that_comes_after_a_loss_changes_nothing() -> None:
    play = starting()
    play.tell(host_ready("epoch_2"))

    assert play.tell(an_exit("a", 1)) == Told((), (forget("a"),))


def test_a_run_that_is_loaded_goes_on_where_it_was() -> None:
    play = Play.of(a_spec(a_worker("a"), a_task("b", "a")))
    play.dispatch()
    rows = Rows()
    rows.store(play.state.take_changes(9))

    again = Play(rows.load(), play.now)

    assert again.state.live == {"a"}
    assert again.state.remaining == {"a": 0, "b": 1}
    (row,) = again.outbox("a")
    told = again.tell(host_ready(recovery=True))
    assert told == Told((), (a_start(a_worker("a")), WriteWorker(row)))


def loaded(play: Play) -> RunState:
    rows = Rows()
    rows.store(play.state.take_changes(1))
    return rows.load()


def test_a_forced_stop_keeps_its_deadline_when_the_daemon_starts_again() -> None:
    play = starting()
    play.started("a")
    play.cancel(force=True)
    until = play.state.next_due()
    after = Play(loaded(play), later(play.now, seconds(3)))

    told = after.tell(host_ready(live=live()))

    assert told.events == ()
    assert after.state.next_due() == until


def test_a_cancel_that_was_committed_is_carried_out_after_a_crash() -> None:
    play = starting()
    play.started("a")
    play.cancel()
    after = Play(loaded(play), play.now)

    told = after.tell(host_ready(live=live()))

    assert set(told.effects) == {stop("a")}
    assert after.stopped("a").events[:2] == (stopped("a"), cancelled("a", "cancelled"))
