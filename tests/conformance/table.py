"""One table of all scenarios and clients, and what is to be said of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tests.conformance.reports import Report, State

Reports = Mapping[str, Report]
_BAD = (State.FAILED, State.MISSING)
_SAID = 4000


def is_well(names: Sequence[str], reports: Reports) -> bool:
    """Tell whether every runner that is here did all that it should."""
    states = [report.of(name).state for report in reports.values() for name in names]
    troubles = [report.troubles for report in reports.values() if report.troubles]
    return not troubles and not any(state in _BAD for state in states)


def table(names: Sequence[str], reports: Reports) -> list[str]:
    states = {side: [report.of(name).state for name in names] for side, report in reports.items()}
    width = max(map(len, names), default=0)
    rows = [("", *states), *zip(names, *states.values(), strict=True)]
    totals = {side: Counter(column) for side, column in states.items()}
    rows += [(state, *(str(totals[side][state]) for side in states)) for state in State]
    return [f"{row[0]:{width}}" + "".join(f"  {cell:>10}" for cell in row[1:]) for row in rows]


def troubles(names: Sequence[str], reports: Reports) -> list[str]:
    return [line for side, report in reports.items() for line in _of(side, names, report)]


def _of(side: str, names: Sequence[str], report: Report) -> list[str]:
    if report.absent:
        return [f"\nWARNING: {side} WAS NOT RUN: {report.absent}"]
    results = {name: report.of(name) for name in names}
    lines = [
        f"\n{side} {name}\n{result.message.strip()[:_SAID]}"
        for name, result in results.items()
        if result.state is State.FAILED
    ]
    wrong = [*report.troubles]
    if any(result.state is State.MISSING for result in results.values()):
        wrong.append("scenarios are missing")
    if wrong:
        lines.append(f"\n{side}: {', '.join(wrong)}; its runner said:\n{report.said[-_SAID:]}")
    return lines
