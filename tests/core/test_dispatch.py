from __future__ import annotations

import json

from crewd.core.events import (
    AttemptEnded,
    AttemptStarted,
    RunFinished,
    RunStarted,
    TaskFinished,
)
from crewd.core.messages import scaffold_text
from crewd.core.model import Result
from crewd.core.spec import Adapter, Limits
from crewd.core.stimuli import HostGone
from crewd.core.units import Instant, later, seconds
from crewd.core.words import OutboxKind, Outcome, RunStatus, TaskStatus
from tests.support.builders import (
    DONE,
    HOST,
    KILLED,
    START,
    a_question,
    a_spec,
    a_start,
    a_task,
    a_worker,
    host_ready,
)
from tests.support.facts import completed, ended, forget, run_completed, starting
from tests.support.play import Play, Told

A, B, C = a_task("a"), a_task("b", "a"), a_task("c")


def test_ready_tasks_start_in_file_order_on_the_slots_granted() -> None:
    play = Play.of(a_spec(A, B, C))

    assert play.dispatch(1) == Told((RunStarted(), starting(A)), (a_start(A),))
    assert play.dispatch(5) == Told((starting(C),), (a_start(C),))
    assert play.dispatch(5) == Told()
    assert play.run_status() is RunStatus.RUNNING


def test_a_task_starts_once_all_it_needs_is_completed() -> None:
    last = a_task("d", "b", "c")
    play = Play.running(a_spec(A, B, C, last))

    assert play.exit("c") == Told((ended("c", DONE), completed("c")), (forget("c"),))
    play.exit("a")
    play.start("b")
    assert play.dispatch() == Told()
    play.exit("b")
    assert play.dispatch() == Told((starting(last),), (a_start(last),))


def test_the_last_task_completes_the_run_with_its_result() -> None:
    play = Play.running(a_spec(A))

    told = play.exit("a")

    assert told == Told((ended("a", DONE), completed("a"), run_completed()), (forget("a"),))
    assert play.state.is_settled


def test_a_run_never_holds_more_than_its_own_limit() -> None:
    tasks = [a_task(f"t{n}") for n in range(5)]
    play = Play.of(a_spec(*tasks, limits=Limits(max_concurrent_workers=2)))

    assert play.state.wanted_slots() == 2
    play.dispatch()
    assert play.state.live == {"t0", "t1"}
    play.started("t0")
    play.exit("t0")
    assert play.state.wanted_slots() == 1


def test_nothing_starts_without_a_host() -> None:
    play = Play.of(a_spec(A))

    assert play.tell(HostGone()) == Told()
    assert play.dispatch() == Told()
    assert play.tell(host_ready()) == Told()
    assert play.state.wanted_slots() == 1


def test_a_started_worker_is_told_once_with_its_host() -> None:
    play = Play.of(a_spec(A))
    play.dispatch()

    started = AttemptStarted(task_id="a", attempt=1, pid=100, host=HOST)
    assert play.started("a") == Told((started,))
    assert play.started("a") == Told()


def test_a_waiting_worker_gives_its_slot_to_the_next_task() -> None:
    asker = a_worker("a")
    play = Play.running(a_spec(asker, C, limits=Limits(max_concurrent_workers=1)))

    play.reported("a", a_question())
    assert play.dispatch() == Told((starting(C),), (a_start(C),))


def test_an_answered_worker_goes_on_at_once_and_nothing_new_starts() -> None:
    tasks = (a_worker("a"), C, a_task("d"))
    play = Play.running(a_spec(*tasks, limits=Limits(max_concurrent_workers=1)))
    play.reported("a", a_question())
    play.dispatch()

    play.answer("ask_q1", "yes")

    assert play.state.in_use == 2
    assert play.state.wanted_slots() == 0
    play.exit("c")
    assert play.state.wanted_slots() == 0


def test_a_worker_that_listens_is_first_told_its_task() -> None:
    second = a_worker("w", "a", timeout=seconds(60))
    play = Play.running(a_spec(A, second))
    play.exit("a")

    play.dispatch()

    (row,) = play.outbox("w")
    assert (row.seq, row.kind) == (1, OutboxKind.TASK)
    body = json.loads(row.body)
    assert body["goal"] == "measure and report"
    assert body["deadline"] == "2030-01-01T00:01:00Z"
    assert body["dependencies"] == [
        {"task_id": "a", "title": "", "status": "completed", "text": "done"}
    ]
    assert "previous" not in body


def test_the_next_attempt_is_told_how_the_one_before_it_ended() -> None:
    play = Play.running(a_spec(a_worker("a")))
    play.exit("a", KILLED)
    play.wait(2)

    play.dispatch()

    (row,) = play.outbox("a")
    previous = {"attempt": 1, "cause": "signal", "message": "killed by SIGTERM"}
    assert json.loads(row.body)["previous"] == previous


def test_a_timeout_is_counted_from_the_start_of_the_attempt() -> None:
    timed = a_task("a", timeout=seconds(60))
    play = Play.of(a_spec(timed))
    play.now = Instant(START + 5)

    told = play.dispatch()

    assert told.events[1] == starting(timed, deadline=later(play.now, seconds(60)))
    assert play.state.next_due() == later(play.now, seconds(60))


def test_a_scaffold_task_completes_without_a_process_and_says_so() -> None:
    pretend = a_task("a", adapter=Adapter.SCAFFOLD)
    play = Play.of(a_spec(pretend))

    told = play.dispatch()

    result = Result(text=scaffold_text(play.task("a")))
    assert told == Told(
        (
            RunStarted(),
            starting(pretend),
            AttemptStarted(task_id="a", attempt=1),
            AttemptEnded(
                task_id="a",
                attempt=1,
                outcome=Outcome.COMPLETED,
                proof="inline",
                result=result,
            ),
            TaskFinished(task_id="a", status=TaskStatus.COMPLETED, result=result),
            RunFinished(status=RunStatus.COMPLETED, result=result),
        )
    )
    assert "Nothing was executed" in result.text
