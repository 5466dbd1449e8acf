"""The clients' own runners: each is started as its developers start it, and its report is read."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from tests.conformance.scenarios import ROOT

TYPESCRIPT = ROOT / "clients" / "typescript"
GO = ROOT / "clients" / "go"
_GO_TEST = "TestConformance"


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
    trouble: str = ""
    """What it said at all, where results are missing."""
    absent: str = ""
    """Why it cannot run here."""

    def of(self, scenario: str) -> Result:
        return self.results.get(scenario, Result(State.ABSENT if self.absent else State.MISSING))


def python(folder: Path) -> Report:
    xml = folder / "python.xml"
    tests = ROOT / "tests" / "conformance" / "test_python.py"
    said = _run([sys.executable, "-m", "pytest", "-q", f"--junitxml={xml}", str(tests)], ROOT)
    return Report(_from_junit(xml), said)


def typescript(folder: Path) -> Report:
    tsc = TYPESCRIPT / "node_modules" / ".bin" / "tsc"
    node = shutil.which("node")
    if node is None or not tsc.exists():
        return Report(absent="node is not installed" if node is None else f"{tsc} is not there")
    xml = folder / "typescript.xml"
    builds = [_run([str(tsc), "--project", name], TYPESCRIPT) for name in _PROJECTS]
    options = ["--test", "--test-reporter=junit", f"--test-reporter-destination={xml}"]
    said = _run([node, *options, "dist-test/test/conformance.test.js"], TYPESCRIPT)
    return Report(_from_junit(xml), "".join([*builds, said]))


def go(_folder: Path) -> Report:
    program = shutil.which("go")
    if program is None:
        return Report(absent="go is not installed")
    test = [program, "test", "-json", "-count=1", "-run", f"^{_GO_TEST}$", "./..."]
    said = _run(test, GO)
    return Report(_from_go(said), "".join(_go_outputs(said, "")))


SIDES: Mapping[str, Callable[[Path], Report]] = {
    "python": python,
    "typescript": typescript,
    "go": go,
}
_PROJECTS = ("tsconfig.json", "tsconfig.test.json")


def _run(command: list[str], cwd: Path) -> str:
    done = subprocess.run(
        command, cwd=cwd, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return done.stdout


def _from_junit(file: Path) -> dict[str, Result]:
    if not file.exists() or not file.stat().st_size:
        return {}
    cases = ET.parse(file).iter("testcase")  # noqa: S314  # our own runners wrote it
    return {_plain_name(case.get("name", "")): _case(case) for case in cases}


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


def _from_go(said: str) -> dict[str, Result]:
    results: dict[str, Result] = {}
    for event in _go_events(said):
        name = str(event.get("Test", "")).removeprefix(f"{_GO_TEST}/")
        state = _GO_STATES.get(str(event.get("Action")))
        if state is not None and name:
            message = "" if state is State.OK else "".join(_go_outputs(said, str(event["Test"])))
            results[name] = Result(state, message)
    return results


def _go_outputs(said: str, test: str) -> list[str]:
    """Give what a test printed, or all that belongs to none."""
    return [
        str(event.get("Output", ""))
        for event in _go_events(said)
        if event.get("Action") in {"output", "build-output"} and event.get("Test", "") == test
    ]


def _go_events(said: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for line in said.splitlines():
        # What the stage and the compiler print stands between the events.
        if line.startswith("{"):
            events.append(json.loads(line))
        else:
            events.append({"Action": "output", "Output": f"{line}\n"})
    return events
