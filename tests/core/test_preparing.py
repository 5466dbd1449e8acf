"""An agent's prompt is kept before the agent starts."""

from __future__ import annotations

import json
from dataclasses import replace

from crewd.core.derive import derived_id
from crewd.core.effects import KeepInOrder, KeepText, StartWorker, WriteWorker
from crewd.core.events import ArtifactRecorded, AttemptEnded, AttemptStarting
from crewd.core.model import Artifact, Result
from crewd.core.prompt.dependencies import EACH_CHARACTERS
from crewd.core.reports import Verdict
from crewd.core.spec import Adapter, TaskSpec
from crewd.core.stimuli import Cancel, TextKept
from crewd.core.words import ArtifactKind, OutboxKind, Outcome, TaskStatus
from tests.support.builders import BROKEN, OPERATOR, RUN_ID, a_spec, a_task, host_ready
from tests.support.play import Play, Told


def an_agent(*needs: str) -> TaskSpec:
    return replace(a_task("a", *needs), adapter=Adapter.PI, command=("pi",), prompt="Do it.")


def texts(told: Told) -> list[KeepText]:
    (effect,) = (effect for effect in told.effects if isinstance(effect, KeepInOrder))
    return list(effect.texts)


def keep(play: Play, text: KeepText) -> Told:
    """Tell the run that the text is durable."""
    key = f"{RUN_ID}/{text.task_id}/{text.attempt}"
    artifact = Artifact(
        id=derived_id("art", key, text.kind, text.name),
        run_id=RUN_ID,
        task_id=text.task_id,
        attempt=text.attempt,
        name=text.name,
        kind=text.kind,
    )
    return play.tell(TextKept(artifact=artifact))


def begun(told: Told) -> list[object]:
    return [type(effect) for effect in told.effects]


def test_an_agent_starts_once_its_prompt_is_kept_and_is_sent_just_that() -> None:
    play = Play.of(a_spec(an_agent()))

    told = play.dispatch()
    (prompt,) = texts(told)
    started = keep(play, prompt)

    assert [type(event) for event in told.events[-1:]] == [AttemptStarting]
    assert begun(told) == [KeepInOrder]
    assert (prompt.name, prompt.kind) == ("prompt.md", ArtifactKind.PROMPT)
    assert [type(event) for event in started.events] == [ArtifactRecorded]
    assert begun(started) == [StartWorker, WriteWorker]
    write = started.effects[1]
    assert isinstance(write, WriteWorker)
    assert write.row.kind is OutboxKind.TASK
    assert json.loads(write.row.body)["text"] == prompt.text
    assert play.attempt("a").prompt_artifact_id


def test_what_a_prompt_points_to_is_kept_before_it() -> None:
    play = Play.running(a_spec(a_task("b"), an_agent("b")))
    long = "x" * (EACH_CHARACTERS + 1)
    play.exit("b", Verdict(outcome=Outcome.COMPLETED, result=Result(text=long)))

    spill, prompt = texts(play.dispatch())

    assert (spill.name, spill.media_type) == ("b.full.txt", "text/plain; charset=utf-8")
    assert spill.text == long
    assert begun(keep(play, spill)) == []
    assert begun(keep(play, prompt)) == [StartWorker, WriteWorker]


def test_a_host_that_comes_back_has_the_same_prompt_kept_again() -> None:
    play = Play.of(a_spec(replace(an_agent(), retry=replace(an_agent().retry, max_attempts=2))))
    (first,) = texts(play.dispatch())
    keep(play, first)
    play.started("a")
    play.exit("a", BROKEN)
    play.wait(60)
    (second,) = texts(play.dispatch())
    assert "Attempt 1 ended" in second.text

    again = play.tell(host_ready())

    assert [(text.name, text.text) for text in texts(again)] == [(second.name, second.text)]
    assert begun(keep(play, second)) == [StartWorker, WriteWorker]
    assert begun(play.tell(host_ready())) == [StartWorker, WriteWorker]


def test_an_agent_that_is_cancelled_before_it_starts_never_does() -> None:
    play = Play.of(a_spec(an_agent()))
    (prompt,) = texts(play.dispatch())

    told = play.tell(Cancel(reason="no", actor=OPERATOR))
    late = keep(play, prompt)

    ended = next(event for event in told.events if isinstance(event, AttemptEnded))
    assert (ended.outcome, ended.proof) == (Outcome.CANCELLED, "never_started")
    assert play.task("a").status is TaskStatus.CANCELLED
    assert StartWorker not in begun(late)
