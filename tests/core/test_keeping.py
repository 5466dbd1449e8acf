from __future__ import annotations

from dataclasses import replace

from crewd.core.decide import decide
from crewd.core.effects import Decision, KeepText
from crewd.core.events import ArtifactRecorded, RunFinished, WarningRaised
from crewd.core.model import Artifact, Result
from crewd.core.reports import Verdict
from crewd.core.spec import OutputSpec, TaskSpec
from crewd.core.state import RunState
from crewd.core.stimuli import Cancel, GoOn, Resume, TextKept, TextWaits
from crewd.core.words import ArtifactKind, Outcome, RunStatus, TaskStatus
from tests.support.builders import (
    DONE,
    OPERATOR,
    RUN_ID,
    START,
    a_spec,
    a_state,
    a_task,
    an_exit,
)

KEPT = Artifact(
    id="art_1",
    run_id=RUN_ID,
    task_id="a",
    attempt=1,
    name="findings.txt",
    kind=ArtifactKind.RESULT,
    size_bytes=4,
    sha256="0" * 64,
)


def named(task_id: str = "a") -> TaskSpec:
    return replace(a_task(task_id), output=OutputSpec(name="findings.txt"))


def running(*tasks: TaskSpec) -> RunState:
    return a_state(a_spec(*tasks), {task.id: TaskStatus.RUNNING for task in tasks})


def ended(state: RunState, verdict: Verdict = DONE) -> Decision:
    return decide(state, an_exit("a", 1, verdict), START)


def status(state: RunState) -> RunStatus:
    return state.run.status


def asked_for(decision: Decision) -> list[KeepText]:
    return [effect for effect in decision.effects if isinstance(effect, KeepText)]


def kinds(decision: Decision) -> list[type]:
    return [type(recorded.event) for recorded in decision.events]


def test_a_named_result_is_kept_before_the_run_ends() -> None:
    state = running(named())
    (effect,) = asked_for(ended(state))
    assert (effect.name, effect.kind, effect.text) == ("findings.txt", ArtifactKind.RESULT, "done")
    assert status(state) is RunStatus.RUNNING

    decision = decide(state, TextKept(artifact=KEPT), START)

    assert kinds(decision) == [ArtifactRecorded, RunFinished]
    assert status(state) is RunStatus.COMPLETED
    assert state.tasks["a"].result == Result(text="done", artifact_id="art_1", sha256=KEPT.sha256)
    assert state.run.result == state.tasks["a"].result


def test_a_result_is_recorded_once_and_when_it_was_kept() -> None:
    state = running(named(), a_task("b"))
    ended(state)
    (recorded,) = decide(state, TextKept(artifact=KEPT), START).events
    assert isinstance(recorded.event, ArtifactRecorded)
    assert recorded.event.artifact.create_time == START
    assert kinds(decide(state, TextKept(artifact=KEPT), START)) == []


def test_a_daemon_that_died_in_between_asks_again() -> None:
    before = running(named())
    ended(before)
    after = RunState(before.run, tasks=before.tasks.values(), attempts=before.attempts.values())
    (effect,) = asked_for(decide(after, GoOn(), START))
    assert effect.name == "findings.txt"
    assert asked_for(decide(after, GoOn(), START)) == []
    decide(after, TextKept(artifact=KEPT), START)
    assert status(after) is RunStatus.COMPLETED


def test_a_result_that_is_an_artifact_already_is_not_kept_again() -> None:
    state = running(named())
    result = Result(text="cut", truncated=True, artifact_id="art_2")
    assert asked_for(ended(state, Verdict(outcome=Outcome.COMPLETED, result=result))) == []
    assert status(state) is RunStatus.COMPLETED


def test_what_did_not_complete_has_no_named_result() -> None:
    state = running(named())
    verdict = Verdict(outcome=Outcome.FAILED, message="no", result=Result(text="half"))
    assert asked_for(ended(state, verdict)) == []
    assert status(state) is RunStatus.FAILED


def test_a_result_without_a_name_is_a_result_only() -> None:
    state = running(a_task("a"))
    assert asked_for(ended(state)) == []
    assert status(state) is RunStatus.COMPLETED


def test_a_cut_result_is_kept_as_such() -> None:
    cut = Verdict(outcome=Outcome.COMPLETED, result=Result(text="end", truncated=True))
    (effect,) = asked_for(ended(running(named()), cut))
    assert effect.truncated


def test_a_cancelled_run_does_not_wait_for_what_cannot_be_kept() -> None:
    state = running(named(), a_task("b"))
    ended(state)
    decision = decide(
        state,
        TextWaits(task_id="a", attempt=1, message="findings.txt waits: the disk is full"),
        START,
    )
    assert kinds(decision) == [WarningRaised]
    decide(state, Cancel(reason="enough", actor=OPERATOR), START)
    decide(state, an_exit("b", 1, stopped=True), START)
    assert status(state) is RunStatus.CANCELLED
    decide(state, TextKept(artifact=KEPT), START)
    assert status(state) is RunStatus.CANCELLED
    assert state.tasks["a"].result == Result(text="done", artifact_id="art_1", sha256=KEPT.sha256)


def test_what_a_daemon_before_had_kept_is_not_waited_for() -> None:
    before = running(named(), a_task("b"))
    ended(before)
    decide(before, Cancel(reason="enough", actor=OPERATOR), START)
    decide(before, an_exit("b", 1, stopped=True), START)
    after = RunState(before.run, tasks=before.tasks.values(), attempts=before.attempts.values())
    decide(after, TextKept(artifact=KEPT), START)
    assert asked_for(decide(after, Resume(actor=OPERATOR), START)) == []
    assert after.keeping.is_over
