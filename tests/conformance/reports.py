"""What a runner said of each scenario, read from the reports of pytest, Node and Go."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

GO_TEST = "TestConformance"


class State(StrEnum):
    """MISSING: its runner ran and did not report it. ABSENT: there is no such runner here."""

    OK = "ok"
    FAILED = "FAIL"
    SKIPPED = "skipped"
    MISSING = "missing"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Result:
    state: State
    message: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What a runner said of each scenario, by `area/name`."""

    results: Mapping[str, Result] = field(default_factory=dict[str, Result])
    said: str = ""
    """What it said at all, but of single scenarios, where it can be told apart."""
    troubles: tuple[str, ...] = ()
    """What went wrong beside the scenarios, or with them too."""
    absent: str = ""
    """Why it cannot run here."""

    def of(self, scenario: str) -> Result:
        return self.results.get(scenario, Result(State.ABSENT if self.absent else State.MISSING))


def from_junit(file: Path) -> dict[str, Result]:
    """Read what pytest or Node wrote; nothing if they wrote nothing."""
    if not file.exists() or not file.stat().st_size:
        return {}
    cases = ET.parse(file).iter("testcase")  # noqa: S314  # our own runners wrote it
    return {_plain_name(case.get("name", "")): _case(case) for case in cases}


def from_go(said: str) -> dict[str, Result]:
    """Read what `go test -json` printed. The test that all scenarios are in is none itself."""
    results: dict[str, Result] = {}
    for event in _go_events(said):
        test = str(event.get("Test", ""))
        state = _GO_STATES.get(str(event.get("Action")))
        if state is not None and test.startswith(f"{GO_TEST}/"):
            message = "" if state is State.OK else _go_output(said, test)
            results[test.removeprefix(f"{GO_TEST}/")] = Result(state, message)
    return results


def beside_go(said: str) -> str:
    """Give what `go test -json` printed that belongs to no scenario."""
    return _go_output(said, "") + _go_output(said, GO_TEST)


def _case(case: ET.Element) -> Result:
    if case.find("skipped") is not None:
        return Result(State.SKIPPED)
    for kind in ("failure", "error"):
        if (wrong := case.find(kind)) is not None:
            # Node escapes what it escaped.
            return Result(State.FAILED, unescape(wrong.get("message") or wrong.text or ""))
    return Result(State.OK)


def _plain_name(name: str) -> str:
    """Take pytest's name of the function off."""
    return name.partition("[")[2].removesuffix("]") or name


_GO_STATES = {"pass": State.OK, "fail": State.FAILED, "skip": State.SKIPPED}


def _go_output(said: str, test: str) -> str:
    """Give what a test printed, or all that belongs to none."""
    return "".join(
        str(event.get("Output", ""))
        for event in _go_events(said)
        if event.get("Action") in {"output", "build-output"} and event.get("Test", "") == test
    )


def _go_events(said: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for line in said.splitlines():
        # What the stage and the compiler print stands between the events.
        if line.startswith("{"):
            events.append(json.loads(line))
        else:
            events.append({"Action": "output", "Output": f"{line}\n"})
    return events
