"""The scenarios are written in the words of their README, and leave no reason out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest

from crewd_client.v1.error_reason_pb2 import ErrorReason
from tests.conformance import stage
from tests.conformance.files import Step
from tests.conformance.matching import OPERATORS
from tests.conformance.scenarios import FOLDER, Scenario, all_scenarios
from tests.conformance.script import contract

SCENARIOS = all_scenarios()
COMMON = {"expect", "error", "save", "client"}
STEPS = {
    "locate": {"env", "unset"},
    "connect": {"as", "env", "unset"},
    "call": {"request", "unknown_field", "timeout"},
    "stream": {"request"},
    "pages": {"request"},
    "watch_run": {"request"},
    "watch_runs": {"request"},
    "watch_asks": {"request"},
    "await": set[str](),
    "ended": set[str](),
    "close": set[str](),
    "json": {"input"},
    "value": set[str](),
}
NOT_PROVOKED = {
    "RUN_READ_ONLY": "nothing there is makes a run read-only",
    "DISK_LOW": "needs a full disk",
    "QUEUE_FULL": "needs ten thousand open runs",
    "RECOVERING": "a recovery is over before a client can call",
    "DRAINING": "lasts as long as a drain waits; a call that is refused so is made again meanwhile",
    "INTERNAL": "needs a fault of the daemon",
}
"""Why no scenario has a real daemon give this reason."""

# JSON as it comes.
Json = Any


def objects(value: Json) -> Iterator[dict[str, Json]]:
    """Give every object in the value, and itself."""
    if isinstance(value, dict):
        yield cast("dict[str, Json]", value)
        value = list(cast("dict[str, Json]", value).values())
    if isinstance(value, list):
        for each in cast("list[object]", value):
            yield from objects(each)


def verb_of(step: Step) -> str:
    (verb,) = step.keys() & {"stage", *STEPS}
    return verb


def reasons_expected(scenario: Scenario) -> set[str]:
    errors = [step["error"] for step in scenario.steps if "error" in step]
    return {error["reason"] for error in errors if error.get("reason")}


def is_scripted(scenario: Scenario) -> bool:
    return any(step.get("stage") == "script" for step in scenario.steps)


def all_reasons() -> set[str]:
    names = {name.removeprefix("ERROR_REASON_") for name in ErrorReason.keys()}  # noqa: SIM118
    return names - {"UNSPECIFIED"}


def test_names_are_unique_and_each_file_is_named_for_its_area() -> None:
    names = [scenario.name for scenario in SCENARIOS]
    assert sorted(set(names)) == sorted(names)
    files = {file.stem: json.loads(file.read_text()) for file in FOLDER.glob("*.json")}
    assert {name: data["area"] for name, data in files.items()} == {name: name for name in files}
    assert all(set(data) == {"area", "scenarios"} for data in files.values())


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_steps_are_those_of_the_contract(scenario: Scenario) -> None:
    assert scenario.about.endswith(".")
    for step in scenario.steps:
        verb = verb_of(step)
        if verb == "stage":
            assert step["stage"] in stage.STEPS
            continue
        assert set(step) <= {verb} | STEPS[verb] | COMMON
        assert not {"expect", "error"} <= set(step) or verb == "await"
        if verb in {"call", "stream", "pages"}:
            assert step[verb] in contract()
        if verb == "watch_run":
            assert "stop_when_finished" in step["request"]


def test_expectations_use_known_operators() -> None:
    for scenario in SCENARIOS:
        for step in scenario.steps:
            for each in objects([step.get("expect"), step.get("error")]):
                operators = {key for key in each if key.startswith("$")}
                assert operators <= OPERATORS, scenario.name
                assert not operators or len(each) == 1, scenario.name


def test_every_reason_is_told_by_a_script_with_all_its_details() -> None:
    told: set[str] = set()
    for scenario in filter(is_scripted, SCENARIOS):
        told |= reasons_expected(scenario)
    assert all_reasons() - told == set()


def test_every_reason_that_can_be_provoked_is_given_by_a_real_daemon() -> None:
    real: set[str] = set()
    for scenario in SCENARIOS:
        if not is_scripted(scenario):
            real |= reasons_expected(scenario)
    assert real == all_reasons() - set(NOT_PROVOKED)
