"""Says aloud which tests had nothing to run against."""

from __future__ import annotations

import pytest

from tests.support.pi import MISSING


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    count = sum(1 for report in skipped if MISSING and MISSING in str(report.longrepr))
    if count:
        terminalreporter.write_sep("!", f"{count} tests SKIPPED: {MISSING}", red=True)
