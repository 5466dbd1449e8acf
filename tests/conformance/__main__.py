"""Runs the scenarios with every client and prints one table: `make conformance`."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.conformance.reports import Report
from tests.conformance.scenarios import all_scenarios
from tests.conformance.sides import SIDES
from tests.conformance.table import is_well, table, troubles


def main() -> int:
    names = [scenario.name for scenario in all_scenarios()]
    with tempfile.TemporaryDirectory() as folder:
        reports = {side: _report(side, Path(folder)) for side in SIDES}
    for line in [*table(names, reports), *troubles(names, reports)]:
        print(line)
    return 0 if is_well(names, reports) else 1


def _report(side: str, folder: Path) -> Report:
    begin = time.monotonic()
    report = SIDES[side](folder)
    print(f"{side}: {time.monotonic() - begin:.0f} s", file=sys.stderr)
    return report


if __name__ == "__main__":
    sys.exit(main())
