"""Runs the scenarios with every client and prints one table: `make conformance`."""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.conformance.scenarios import all_scenarios
from tests.conformance.sides import SIDES, Report, State

_BAD = (State.FAILED, State.MISSING)
_SAID = 4000


def main() -> int:
    names = [scenario.name for scenario in all_scenarios()]
    with tempfile.TemporaryDirectory() as folder:
        reports = {side: _report(side, Path(folder)) for side in SIDES}
    states = {side: [report.of(name).state for name in names] for side, report in reports.items()}
    for row in _table(names, states):
        print(row)
    for line in _troubles(names, reports):
        print(line)
    return int(any(state in _BAD for column in states.values() for state in column))


def _report(side: str, folder: Path) -> Report:
    begin = time.monotonic()
    report = SIDES[side](folder)
    print(f"{side}: {time.monotonic() - begin:.0f} s", file=sys.stderr)
    return report


def _table(names: list[str], states: Mapping[str, list[State]]) -> list[str]:
    width = max(map(len, names), default=0)
    rows = [("", *states), *zip(names, *states.values(), strict=True)]
    totals = {side: Counter(column) for side, column in states.items()}
    rows += [(state, *(str(totals[side][state]) for side in states)) for state in State]
    return [f"{row[0]:{width}}" + "".join(f"  {cell:>10}" for cell in row[1:]) for row in rows]


def _troubles(names: list[str], reports: Mapping[str, Report]) -> list[str]:
    lines: list[str] = []
    for side, report in reports.items():
        if report.absent:
            lines.append(f"\nWARNING: {side} WAS NOT RUN: {report.absent}")
            continue
        results = {name: report.of(name) for name in names}
        for name, result in results.items():
            if result.state is State.FAILED:
                lines.append(f"\n{side} {name}\n{result.message.strip()[:_SAID]}")
        if any(result.state is State.MISSING for result in results.values()):
            lines.append(
                f"\n{side}: scenarios are missing; its runner said:\n{report.trouble[-_SAID:]}"
            )
    return lines


if __name__ == "__main__":
    sys.exit(main())
