"""Every case taken from upstream says where it is from, and every deviation why.

A case has upstream's `area` and `source`. Where crewd comes to something else, or keeps less of
what upstream kept, `upstream_expect` has what that was and `decision` crewd's own rule. A mere
change of shape has neither: fields under other names, one field where upstream repeats it in
several (`textEvents`, `jsonEvents`), a line of a file for the field of a skill, an option of a
command line with its value, the task that a token names left out of a question.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

Case = Mapping[str, Any]
FILES: Final = sorted((Path(__file__).parents[1] / "data" / "vectors").glob("*.json"))
FIELDS: Final = frozenset({"area", "case", "expect", "input", "source"})
OF_DEVIATIONS: Final = frozenset({"decision", "upstream_expect"})
CASES: Final[list[tuple[str, Case]]] = [
    (file.name, case) for file in FILES for case in json.loads(file.read_text())
]


def named(file: str, case: Case) -> str:
    return f"{file}: {case.get('area')}: {case.get('case')}"


def test_there_are_vectors_of_every_part() -> None:
    assert {file.stem for file in FILES} >= {"catalog", "pi", "prompt", "scheduler", "worker"}


def test_every_case_says_where_it_is_from_and_what_is_expected() -> None:
    lacking = [named(*of) for of in CASES if not of[1].keys() >= FIELDS or not of[1]["source"]]
    assert lacking == []
    unknown = {key for _, case in CASES for key in case} - FIELDS - OF_DEVIATIONS - {"note"}
    assert unknown == set()


def test_every_deviation_says_why_and_nothing_else_does() -> None:
    halves = [named(*of) for of in CASES if 0 < len(OF_DEVIATIONS & of[1].keys()) < 2]
    assert halves == []
    decided = [of for of in CASES if "decision" in of[1]]
    assert [named(*of) for of in decided if not of[1]["decision"].endswith(".")] == []
    same = [named(*of) for of in decided if of[1]["expect"] == of[1]["upstream_expect"]]
    assert same == []


def test_no_case_is_there_twice() -> None:
    keys = [(case["area"], case["case"], json.dumps(case["input"])) for _, case in CASES]
    assert len(keys) == len(set(keys))
