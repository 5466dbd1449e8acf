"""Agents that have done, or have fallen silent, in ways that once kept a process for ever."""

from __future__ import annotations

from dataclasses import replace

from crewd.core.effects import CloseStdin, StartWorker, StopWorker, WriteWorker
from crewd.core.model import Result
from crewd.core.reports import (
    ResultGiven,
    SessionOpened,
    SessionRenewed,
    ToolBegan,
    TurnEnded,
    TurnStop,
)
from crewd.core.spec import Adapter, Limits, TaskSpec
from crewd.core.stimuli import Refusal, WorkerRefused
from crewd.core.units import seconds
from crewd.core.words import Cause, Outcome, TaskStatus
from tests.core.test_pass_on import kept
from tests.support.builders import NO_RESULT, a_question, a_spec, a_task
from tests.support.play import Play, Told
from tests.support.rows import Rows

DONE = TurnEnded(stop=TurnStop.DONE, result=Result(text="done"))


def an_agent(task_id: str) -> TaskSpec:
    return replace(a_task(task_id), adapter=Adapter.PI, command=("pi",))


def working(*tasks: TaskSpec) -> Play:
    """Play a run of one worker at a time, whose first agent works."""
    play = Play.of(a_spec(*tasks, limits=Limits(max_concurrent_workers=1)))
    play.dispatch()
    play.started("a")
    play.accepted("a")
    return play


def types(told: Told) -> list[type]:
    return [type(effect) for effect in told.effects]


def test_an_agent_that_has_handed_in_and_falls_silent_is_stopped_and_its_result_counts() -> None:
    play = working(an_agent("a"))
    play.reported("a", ResultGiven(result=Result(text="42"), outcome=Outcome.COMPLETED))

    assert StopWorker in types(play.wait(700))
    play.stopped("a")

    assert play.task("a").status is TaskStatus.COMPLETED


def test_who_tells_twice_that_its_turn_is_over_promises_its_process_once() -> None:
    play = working(an_agent("a"), an_agent("b"), an_agent("c"))
    play.reported("a", DONE)

    again = play.reported("a", DONE)

    assert again.effects == ()
    assert list(play.state.promised) == ["b"]


def test_a_task_that_is_cancelled_while_its_process_ends_does_not_start() -> None:
    play = working(an_agent("a"), an_agent("b"))
    play.reported("a", DONE, SessionOpened("d1"), SessionRenewed())
    kept(play, "b")
    play.cancel_tasks("b")

    told = play.exit("a", NO_RESULT)
    play.tell(WorkerRefused(task_id="b", attempt=1, kind=Refusal.NOT_PASSED, message="it ended"))

    assert StartWorker not in types(told)
    assert play.task("b").status is TaskStatus.CANCELLED


def test_who_waits_for_a_person_has_no_slot_to_hand_on() -> None:
    play = working(an_agent("a"), an_agent("b"), an_agent("c"))
    play.reported("a", a_question())
    play.dispatch()

    told = play.reported("a", DONE)

    assert types(told) == [CloseStdin]
    assert play.state.live == {"a", "b"}


def test_who_is_one_worker_too_many_hands_nothing_on() -> None:
    play = working(an_agent("a"), an_agent("b"), an_agent("c"))
    play.reported("a", a_question(ask_id="ask_1"))
    play.dispatch()
    assert WriteWorker in types(play.answer("ask_1", "yes"))

    assert types(play.reported("a", DONE)) == [CloseStdin]


def test_a_timeout_counts_though_the_agent_has_been_silent_as_long() -> None:
    play = working(replace(an_agent("a"), timeout=seconds(20)))
    play.reported("a", ToolBegan(tool_id="t", name="bash"))

    assert StopWorker in types(play.wait(700))
    play.stopped("a")

    assert play.attempt("a").cause is Cause.TIMEOUT


def test_a_daemon_that_comes_back_knows_until_when_an_agent_may_be_silent() -> None:
    play = working(an_agent("a"))
    rows = Rows()
    rows.store(play.state.take_changes(1))

    assert rows.load().next_due() == play.state.next_due() is not None
