"""Changes of many tasks come in slices, and one task costs what it does in a small run."""

from __future__ import annotations

from crewd.core.effects import Continue
from crewd.core.events import RunCancelRequested, TaskFinished
from crewd.core.words import RunStatus, TaskStatus
from tests.support.builders import BROKEN, a_careful_spec, a_spec, a_task, host_ready
from tests.support.play import Play, Told
from tests.support.rows import Rows

MANY = 1201


def wide(*, careful: bool = False) -> Play:
    """One task, and many that need it."""
    rest = (a_task(f"t{n:04}", "a") for n in range(MANY))
    spec = a_careful_spec(a_task("a"), *rest) if careful else a_spec(a_task("a"), *rest)
    return Play.running(spec)


def sizes(first: Told, rest: list[Told]) -> list[int]:
    counts = [
        sum(isinstance(event, TaskFinished) for event in told.events) for told in (first, *rest)
    ]
    return [count for count in counts if count]


def test_a_cancel_is_recorded_at_once_and_carried_out_in_slices() -> None:
    play = wide()

    told = play.cancel()
    assert isinstance(told.events[0], RunCancelRequested)
    assert told.effects[-1] == Continue()
    rest = play.go_on(told)

    assert sizes(told, rest) == [499, 500, 202]
    assert play.run_status() is RunStatus.CANCELLING
    play.stopped("a")
    assert play.run_status() is RunStatus.CANCELLED


def test_unreachable_tasks_are_skipped_in_slices() -> None:
    play = wide(careful=True)

    told = play.exit("a", BROKEN)

    assert sizes(told, play.go_on(told)) == [501, 500, 201]
    assert play.run_status() is RunStatus.FAILED


def test_a_run_that_fails_fast_skips_the_rest_in_slices() -> None:
    play = wide()

    told = play.exit("a", BROKEN)

    assert sizes(told, play.go_on(told)) == [501, 500, 201]
    assert set(play.statuses().values()) == {TaskStatus.FAILED, TaskStatus.SKIPPED}


def test_a_failure_that_a_resume_runs_into_ends_the_resume() -> None:
    """Nothing is put back only to be skipped again."""
    tasks = [a_task(f"t{n:04}") for n in range(MANY)]
    play = Play.running(a_spec(*tasks))
    play.go_on(play.cancel_tasks(*(task.id for task in tasks[4:])))
    play.resume()

    told = play.exit("t0000", BROKEN)
    play.go_on(told)

    assert play.state.run.requeueing == ""
    statuses = list(play.statuses().values())
    assert statuses.count(TaskStatus.CANCELLED) + statuses.count(TaskStatus.SKIPPED) == MANY - 4


def test_a_change_that_a_crash_cut_short_is_finished_after_it() -> None:
    for cancels in (True, False):
        play, rows = wide(), Rows()
        if cancels:
            play.cancel()
        else:
            play.exit("a", BROKEN)
        rows.store(play.state.take_changes(1))

        after = Play(rows.load(), play.now)
        told = after.tell(host_ready("epoch_2"))
        after.go_on(told)

        assert after.run_status() in {RunStatus.CANCELLED, RunStatus.FAILED}
        assert TaskStatus.QUEUED not in after.statuses().values()


def test_a_resume_that_a_crash_cut_short_is_finished_after_it() -> None:
    play, rows = wide(), Rows()
    play.cancel()
    play.go_on(play.stopped("a"))
    play.resume()
    rows.store(play.state.take_changes(1))

    after = Play(rows.load(), play.now)
    after.go_on(after.tell(host_ready()))

    assert set(after.statuses().values()) == {TaskStatus.QUEUED}
    assert after.state.run.requeueing == ""
    assert after.state.wanted_slots() == 1


def test_a_task_touches_its_own_rows_and_no_others() -> None:
    play = wide()
    play.state.take_changes(1)

    play.exit("a")

    changes = play.state.take_changes(2)
    assert [task.id for task in changes.tasks] == ["a"]
    assert [attempt.task_id for attempt in changes.attempts] == ["a"]
