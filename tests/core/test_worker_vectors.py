"""Workers that ask, hand in and go on: cases taken from upstream.

`decision` names crewd's own rule where it decides differently.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from crewd.core.effects import StopWorker
from crewd.core.errors import CrewdError
from crewd.core.events import AskOpened, AskSettled
from crewd.core.model import Usage
from crewd.core.output_schema import problems_of
from crewd.core.reports import Used
from crewd.core.spec import Adapter, AgentSpec, OnTimeout
from crewd.core.stimuli import WorkerCalled
from crewd.core.units import seconds
from crewd.core.words import OutboxKind
from tests.support.builders import BROKEN, DONE, OPERATOR, a_question, a_spec, a_task, a_worker
from tests.support.play import Play, Told

Case = Mapping[str, Any]
CASES: Final[list[Case]] = json.loads(
    (Path(__file__).parents[1] / "data" / "vectors" / "worker.json").read_text()
)
QUESTION: Final = a_question("q", ask_id="q", timeout=seconds(60), on_timeout=OnTimeout.CONTINUE)
EVENTS: Final = {AskOpened: "ask.requested", AskSettled: "ask.answered"}


def turn_limit(given: Case) -> Case:
    agent = AgentSpec(name="coder", max_turns=given["maxTurns"])
    task = replace(a_task("a"), adapter=Adapter.PI, agent="coder", command=("pi",))
    play = Play.running(replace(a_spec(task), agents={"coder": agent}))
    play.accepted("a")
    used = Used(usage=Usage(input_tokens=1, turns=1))
    told = [play.reported("a", used) for _ in range(given["turns"])]
    steers = [row for row in play.outbox("a") if row.kind is OutboxKind.STEER]
    return {"actions": [_action(each) for each in told], "steersWritten": len(steers)}


def _action(told: Told) -> str:
    return "stop" if any(isinstance(e, StopWorker) for e in told.effects) else "none"


def yield_schema(given: tuple[object, object]) -> Case:
    data, schema = given
    wrong = schema is not None and problems_of(json.dumps(schema), json.dumps(data))
    return {"valid": not wrong, **({"error": "schema_mismatch"} if wrong else {})}


def structured_result(given: Case) -> Case:
    text, schema = given["text"], json.dumps(given["schema"])
    data = text if text.startswith("{") else ""
    if not problems_of(schema, data):
        return {"structured": True, "data": json.loads(data)}
    return {"structured": False, "data": None, "error": "schema_mismatch" if data else "no_data"}


def ask_lifecycle(given: Case) -> Case:
    """Tell what becomes of a question whose worker lives, dies or is ended while it waits."""
    play = _asking(given)
    during = play.task("t").status
    refused = _late(play) if "taskStatus" in given else None
    _go_through(play, given)
    answers = _answers(play)
    after = play.task("t").status
    return {
        "events": [EVENTS[kind] for r in play.log if (kind := type(r.event)) in EVENTS],
        "result": answers,
        "taskDuring": during,
        "taskAfter": after,
        "taskWaitRecordCleared": not play.task("t").open_ask_ids,
        "refused": refused,
        "taskUnchanged": during == after,
        "answerCarriedToNextAttempt": after == "queued" and _asked_again(play) == ["x"],
    }


def _asking(given: Case) -> Play:
    play = Play.running(a_spec(a_worker("t")))
    play.accepted("t")
    if given.get("taskStatus") == "completed":
        play.exit("t", DONE)
    else:
        play.reported("t", QUESTION)
    return play


def _late(play: Play) -> str:
    with pytest.raises(CrewdError) as raised:
        play.tell(WorkerCalled(task_id="t", attempt=1, report=QUESTION, actor=OPERATOR))
    return raised.value.reason.value


def _go_through(play: Play, given: Case) -> None:
    if "heartbeatAgeSec" in given or given.get("workerAlive") is False:
        play.exit("t", BROKEN)
    if "abortAtSec" in given:
        play.cancel_tasks("t")
        play.stopped("t")
    if "deadlinePassed" in given:
        play.wait(60)
    if {"answer", "answerAtSec"} & given.keys():
        play.answer("q", "x")


def _asked_again(play: Play) -> list[str]:
    """Let the next attempt ask the same; give the answers it has at once."""
    play.wait(5)
    play.start("t")
    play.accepted("t")
    play.reported("t", QUESTION)
    return _answers(play)


def _answers(play: Play) -> list[str]:
    rows = [row for row in play.outbox("t") if row.kind is OutboxKind.ANSWER]
    return [json.loads(row.body)["text"] for row in rows]


AREAS: Final[Mapping[str, Callable[[Any], Case]]] = {
    "turn_limit": turn_limit,
    "yield_schema": yield_schema,
    "structured_result_schema": structured_result,
    "ask_lifecycle": ask_lifecycle,
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['area']}: {case['case']}")
def test_a_case_comes_out_as_expected(case: Case) -> None:
    found = AREAS[case["area"]](case["input"])

    assert {key: found.get(key) for key in case["expect"]} == case["expect"]


def test_every_area_has_cases() -> None:
    assert {case["area"] for case in CASES} == set(AREAS)
