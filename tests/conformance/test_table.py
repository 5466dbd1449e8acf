from __future__ import annotations

import pytest

from tests.conformance.reports import Report, Result, State
from tests.conformance.table import is_well, table, troubles

NAMES = ["a/one", "a/two"]
FINE = dict.fromkeys(NAMES, Result(State.OK))
HALF = {"a/one": Result(State.OK)}
FAILING = {**FINE, "a/two": Result(State.FAILED, "step 1: no")}


def test_the_table_has_a_row_for_each_scenario_and_a_column_for_each_client() -> None:
    rows = table(NAMES, {"python": Report(FINE), "go": Report(FAILING), "js": Report(absent="-")})
    assert [row.split() for row in rows] == [
        ["python", "go", "js"],
        ["a/one", "ok", "ok", "absent"],
        ["a/two", "ok", "FAIL", "absent"],
        ["ok", "2", "1", "0"],
        ["FAIL", "0", "1", "0"],
        ["skipped", "0", "0", "0"],
        ["missing", "0", "0", "0"],
        ["absent", "0", "0", "2"],
    ]


@pytest.mark.parametrize(
    ("report", "well", "said"),
    [
        (Report(FINE, "chatter"), True, []),
        (Report(absent="no go"), True, ["\nWARNING: go WAS NOT RUN: no go"]),
        (Report(FAILING), False, ["\ngo a/two\nstep 1: no"]),
        (Report(HALF, "why"), False, ["\ngo: scenarios are missing; its runner said:\nwhy"]),
        (
            Report(FINE, "the stage", ("go test ended with 1",)),
            False,
            ["\ngo: go test ended with 1; its runner said:\nthe stage"],
        ),
        (
            Report({}, "wrong", ("tsc ended with 2",)),
            False,
            ["\ngo: tsc ended with 2, scenarios are missing; its runner said:\nwrong"],
        ),
    ],
    ids=["fine", "absent", "failing", "missing", "trouble at the end", "not built"],
)
def test_what_is_wrong_is_said_and_no_success(report: Report, well: bool, said: list[str]) -> None:  # noqa: FBT001
    assert is_well(NAMES, {"go": report}) is well
    assert troubles(NAMES, {"go": report}) == said
