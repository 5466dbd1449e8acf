"""What comes late, twice, or of something that is no more."""

from __future__ import annotations

import pytest

from crewd.core.reports import Message
from crewd.core.stimuli import (
    Capacity,
    Due,
    GoOn,
    HostGone,
    OutboxAccepted,
    OutboxRoom,
    Refusal,
    Stimulus,
    WorkerRefused,
    WorkerReported,
    WorkerStarted,
)
from crewd.core.words import RunStatus, TaskStatus
from tests.support.builders import (
    BROKEN,
    DONE,
    a_question,
    a_spec,
    a_worker,
    an_exit,
    host_ready,
)
from tests.support.facts import forget
from tests.support.play import Play, Told


def report(attempt: int, offset: int) -> WorkerReported:
    return WorkerReported(
        task_id="a",
        attempt=attempt,
        stdout_offset=offset,
        stderr_offset=0,
        stdout_bytes=offset,
        stderr_bytes=0,
        adapter_state="{}",
        reports=(Message("hello"), a_question()),
    )


def of_attempt(number: int) -> dict[str, Stimulus]:
    return {
        "started": WorkerStarted(task_id="a", attempt=number, pid=100),
        "refused": WorkerRefused(task_id="a", attempt=number, kind=Refusal.SPAWN, message="no"),
        "reported": report(number, 99),
        "accepted": OutboxAccepted(task_id="a", attempt=number, seq=9),
        "room": OutboxRoom(task_id="a", attempt=number),
    }


@pytest.mark.parametrize("kind", of_attempt(1))
@pytest.mark.parametrize("number", [1, 3])
def test_news_of_another_attempt_change_nothing(kind: str, number: int) -> None:
    play = Play.running(a_spec(a_worker("a")))
    play.exit("a", BROKEN)
    play.wait(5)
    play.start("a")
    play.state.take_changes(1)

    assert play.tell(of_attempt(number)[kind]) == Told()
    assert not play.state.changed.run


@pytest.mark.parametrize("kind", of_attempt(1))
def test_news_of_a_finished_run_change_nothing(kind: str) -> None:
    play = Play.running(a_spec(a_worker("a")))
    play.exit("a")
    play.state.take_changes(1)

    assert play.tell(of_attempt(1)[kind]) == Told()
    assert not play.state.changed.run


def test_an_exit_nobody_waits_for_is_forgotten_by_the_host() -> None:
    play = Play.running(a_spec(a_worker("a")))
    play.exit("a", BROKEN)
    play.wait(5)
    play.start("a")

    assert play.tell(an_exit("a", 1)) == Told((), (forget("a"),))
    assert play.task("a").status is TaskStatus.RUNNING


def test_output_that_was_read_before_is_not_heard_again() -> None:
    play = Play.running(a_spec(a_worker("a")))
    told = play.tell(report(1, 50))
    assert len(told.events) == 2

    assert play.tell(report(1, 50)) == Told()
    assert play.tell(report(1, 20)) == Told()
    assert play.attempt("a").stdout_offset == 50


@pytest.mark.parametrize(
    "stimulus",
    [
        GoOn(),
        Due(),
        Capacity(9),
        HostGone(),
        host_ready(),
        host_ready("epoch_2", recovery=True),
        an_exit("a", 1, DONE),
    ],
    ids=lambda stimulus: type(stimulus).__name__,
)
def test_nothing_but_a_person_moves_a_finished_run(stimulus: Stimulus) -> None:
    play = Play.running(a_spec(a_worker("a")))
    play.exit("a")
    play.state.take_changes(1)

    assert play.tell(stimulus).events == ()
    assert not play.state.changed.run
    assert play.run_status() is RunStatus.COMPLETED


def test_every_event_of_a_run_has_the_next_sequence() -> None:
    play = Play.running(a_spec(a_worker("a"), a_worker("b", "a")))
    play.exit("a", BROKEN)
    play.wait(5)
    play.start("a")
    play.cancel()
    play.stopped("a")

    assert [recorded.run_sequence for recorded in play.log] == list(range(1, len(play.log) + 1))
