from __future__ import annotations

from dataclasses import replace

from crewd.core.effects import StopWorker
from crewd.core.events import SteerUpdated
from crewd.core.model import Usage
from crewd.core.reports import Message, ToolBegan, Used
from crewd.core.spec import Adapter, AgentSpec, RunSpec
from crewd.core.words import ActorKind, Cause, Outcome, TaskStatus
from tests.support.builders import a_question, a_spec, a_task, a_worker
from tests.support.play import Play, Told


def an_agents_run(max_turns: int | None = None) -> RunSpec:
    task = replace(a_task("a"), adapter=Adapter.PI, agent="coder", command=("pi",))
    return replace(a_spec(task), agents={"coder": AgentSpec(name="coder", max_turns=max_turns)})


def working(spec: RunSpec) -> Play:
    play = Play.running(spec)
    play.accepted("a")
    return play


def stops(told: Told) -> bool:
    return any(isinstance(effect, StopWorker) for effect in told.effects)


def turns(count: int) -> Used:
    return Used(usage=Usage(input_tokens=1, turns=count))


def test_an_agent_that_never_says_a_word_is_stopped_after_a_minute() -> None:
    play = working(an_agents_run())

    assert not stops(play.wait(59))
    assert stops(play.wait(2))
    play.stopped("a")

    assert play.attempt("a").outcome is Outcome.TIMED_OUT
    assert play.attempt("a").cause is Cause.STALLED
    assert play.attempt("a").retryable


def test_every_word_gives_an_agent_ten_more_minutes() -> None:
    play = working(an_agents_run())
    play.reported("a", Message("thinking"))

    assert not stops(play.wait(590))
    play.reported("a", Message("still thinking"))
    assert not stops(play.wait(590))

    assert stops(play.wait(20))


def test_an_agent_that_waits_for_a_tool_or_for_a_person_may_be_silent() -> None:
    for report in (ToolBegan(tool_id="t", name="bash"), a_question()):
        play = working(an_agents_run())
        play.reported("a", report)

        for _ in range(10):
            assert not stops(play.wait(601))


def test_the_silence_of_any_other_worker_means_nothing() -> None:
    play = working(a_spec(a_worker("a")))

    assert not stops(play.wait(100_000))


def test_an_agent_at_its_last_turn_is_told_to_finish_and_stopped_five_turns_later() -> None:
    play = working(an_agents_run(max_turns=3))
    assert not play.reported("a", turns(2)).events[1:]

    told = play.reported("a", turns(1))
    steer = told.events[-1]

    assert isinstance(steer, SteerUpdated)
    assert "3 turns" in steer.text
    assert play.log[-1].actor.kind is ActorKind.POLICY
    assert not stops(play.reported("a", turns(4)))
    assert stops(play.reported("a", turns(1)))
    play.stopped("a")
    assert play.task("a").status is TaskStatus.FAILED
    assert "turns" in play.attempt("a").message
