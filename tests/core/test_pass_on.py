"""An agent's process that goes on with the next task of its kind."""

from __future__ import annotations

import json
from dataclasses import replace

from crewd.core.derive import derived_id
from crewd.core.effects import (
    CloseStdin,
    KeepInOrder,
    PassWorker,
    StartWorker,
    StopWorker,
    WriteWorker,
)
from crewd.core.events import AttemptEnded
from crewd.core.model import Artifact, Result
from crewd.core.reports import SessionOpened, SessionRenewed, TurnEnded, TurnStop
from crewd.core.spec import Adapter, TaskSpec
from crewd.core.stimuli import Cancel, Refusal, TextKept, WorkerRefused
from crewd.core.words import ArtifactKind, OutboxKind, TaskStatus
from tests.support.builders import (
    HOST_EPOCH,
    NO_RESULT,
    OPERATOR,
    RUN_ID,
    a_spec,
    a_task,
    an_exit,
    host_ready,
)
from tests.support.play import Play, Told

PASSED = PassWorker(giver_task_id="a", giver_attempt=1, task_id="b", attempt=1, epoch=HOST_EPOCH)
DONE = TurnEnded(stop=TurnStop.DONE, result=Result(text="a is done"))


def an_agent(task_id: str, agent: str = "coder") -> TaskSpec:
    return replace(a_task(task_id), adapter=Adapter.PI, agent=agent, command=("pi",))


def a_run(*tasks: TaskSpec) -> Play:
    """Play a run of one worker at a time, whose first agent works."""
    spec = a_spec(*tasks)
    play = Play.of(replace(spec, limits=replace(spec.limits, max_concurrent_workers=1)))
    play.dispatch()
    kept(play, "a")
    play.started("a")
    play.accepted("a")
    return play


def kept(play: Play, task_id: str) -> Told:
    key = f"{RUN_ID}/{task_id}/1"
    prompt = Artifact(
        id=derived_id("art", key, ArtifactKind.PROMPT, "prompt.md"),
        run_id=RUN_ID,
        task_id=task_id,
        attempt=1,
        name="prompt.md",
        kind=ArtifactKind.PROMPT,
    )
    return play.tell(TextKept(artifact=prompt))


def types(told: Told) -> list[type]:
    return [type(effect) for effect in told.effects]


def rows(told: Told) -> list[tuple[str, OutboxKind]]:
    written = [effect.row for effect in told.effects if isinstance(effect, WriteWorker)]
    return [(row.task_id, row.kind) for row in written]


def promised(*tasks: TaskSpec) -> Play:
    """Play a run whose first agent has done and whose process is promised to the second."""
    play = a_run(*tasks or (an_agent("a"), an_agent("b")))
    play.reported("a", DONE)
    return play


def renew(play: Play) -> Told:
    play.reported("a", SessionOpened("d1"))
    return play.reported("a", SessionRenewed())


def test_a_process_whose_task_is_done_is_handed_on_step_by_step() -> None:
    play = a_run(an_agent("a"), an_agent("b"))

    done = play.reported("a", DONE)
    opened = play.reported("a", SessionOpened("d1"))
    renewed = play.reported("a", SessionRenewed())
    ready = kept(play, "b")

    assert types(done) == [WriteWorker, KeepInOrder]
    assert rows(done) == [("a", OutboxKind.RENEW)]
    assert rows(opened) == [("a", OutboxKind.NEXT)]
    write = opened.effects[0]
    assert isinstance(write, WriteWorker)
    assert json.loads(write.row.body) == {"type": "next", "id": "d1", "task_id": "b", "attempt": 1}
    assert types(renewed) == []
    assert ready.effects[0] == PASSED
    assert rows(ready) == [("b", OutboxKind.TASK)]


def test_both_tasks_end_as_if_each_had_had_a_process_of_its_own() -> None:
    play = promised()
    renew(play)
    kept(play, "b")

    told = play.tell(an_exit("a", 1, NO_RESULT, passed=True))
    play.started("b")

    ended = next(event for event in told.events if isinstance(event, AttemptEnded))
    assert ended.proof == "passed_on"
    assert play.task("a").status is TaskStatus.COMPLETED
    assert play.task("b").status is TaskStatus.RUNNING
    assert play.attempt("b").pid
    play.reported("b", replace(DONE, result=Result(text="b is done")))
    play.exit("b", NO_RESULT)
    assert play.task("b").result == Result(text="b is done")


def test_a_promised_process_holds_one_slot_not_two() -> None:
    play = promised(an_agent("a"), an_agent("b"), an_agent("c"))

    assert play.state.in_use == 1
    assert play.state.wanted_slots() == 0


def test_only_the_task_that_is_next_gets_it_and_only_if_it_is_of_the_same_kind() -> None:
    for other in (an_agent("b", "another"), a_task("b"), replace(an_agent("b"), cwd="/else")):
        play = a_run(an_agent("a"), other, an_agent("c"))

        assert types(play.reported("a", DONE)) == [CloseStdin]


def test_an_agent_that_failed_hands_nothing_on() -> None:
    play = a_run(an_agent("a"), an_agent("b"))

    assert types(play.reported("a", TurnEnded(stop=TurnStop.FAILED))) == [CloseStdin]


def test_a_process_that_ends_before_it_is_handed_on_costs_only_a_start() -> None:
    play = promised()
    kept(play, "b")

    told = play.exit("a", NO_RESULT)

    assert StartWorker in types(told)
    assert rows(told) == [("b", OutboxKind.TASK)]
    assert play.task("a").status is TaskStatus.COMPLETED


def test_a_process_that_the_host_does_not_hand_on_is_dismissed() -> None:
    play = promised()
    renew(play)
    kept(play, "b")

    told = play.tell(
        WorkerRefused(task_id="b", attempt=1, kind=Refusal.NOT_PASSED, message="it has children")
    )

    assert types(told) == [CloseStdin, StartWorker, WriteWorker]
    assert play.task("b").status is TaskStatus.RUNNING


def test_one_that_is_not_renewed_in_time_is_stopped_and_the_next_task_starts_alone() -> None:
    play = promised()
    kept(play, "b")

    assert StopWorker in types(play.wait(6))
    told = play.stopped("a")

    assert StartWorker in types(told)
    assert play.task("a").status is TaskStatus.COMPLETED


def test_a_host_that_comes_back_knows_of_no_promise() -> None:
    play = promised()
    renew(play)
    kept(play, "b")

    told = play.tell(host_ready())

    assert StartWorker in types(told)
    assert PassWorker not in types(told)


def test_a_run_that_is_cancelled_hands_nothing_on() -> None:
    play = promised()
    kept(play, "b")

    play.tell(Cancel(reason="no", actor=OPERATOR))
    told = play.stopped("a")

    assert play.task("b").status is TaskStatus.CANCELLED
    assert not {StartWorker, PassWorker} & set(types(told))


def test_a_process_does_ten_tasks_and_then_gives_its_slot_back() -> None:
    names = [f"t{n:02}" for n in range(12)]
    play = a_run(*[an_agent("a"), *(an_agent(name) for name in names)])

    passes = 0
    giver = "a"
    for heir in names:
        if CloseStdin in types(play.reported(giver, DONE)):
            break
        play.reported(giver, SessionOpened("d"))
        play.reported(giver, SessionRenewed())
        kept(play, heir)
        play.tell(an_exit(giver, 1, NO_RESULT, passed=True))
        play.started(heir)
        passes += 1
        giver = heir

    assert passes == 9
    play.exit(giver, NO_RESULT)
    assert play.state.wanted_slots() == 1
