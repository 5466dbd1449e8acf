"""The scenarios, as they are written."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tests.architecture.sources import ROOT
from tests.conformance.files import Step

FOLDER = ROOT / "clients" / "conformance" / "scenarios"
_VARIABLE = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    """`area/name`."""
    about: str
    steps: tuple[Step, ...]


def all_scenarios() -> list[Scenario]:
    return [scenario for file in sorted(FOLDER.glob("*.json")) for scenario in read(file)]


def read(file: Path) -> list[Scenario]:
    data = json.loads(file.read_text())
    return [
        Scenario(f"{data['area']}/{each['name']}", each["about"], tuple(each["steps"]))
        for each in data["scenarios"]
    ]


def filled(value: object, variables: dict[str, object]) -> object:
    """Put the variables in; a text that is nothing else becomes the variable's value."""
    if isinstance(value, str):
        whole = _VARIABLE.fullmatch(value)
        if whole is not None:
            return variables[whole[1]]
        return _VARIABLE.sub(lambda found: str(variables[found[1]]), value)
    if isinstance(value, list):
        return [filled(item, variables) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        given = cast("dict[str, object]", value)
        return {key: filled(item, variables) for key, item in given.items()}
    return value
