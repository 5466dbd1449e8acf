"""Fixtures for tests that need a real daemon."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import cast

import pytest

from tests.support.daemon import Daemon
from tests.support.desk import Desk
from tests.support.places import a_daemon


@pytest.fixture
async def daemon() -> AsyncIterator[Daemon]:
    """Run a daemon that serves."""
    async with a_daemon() as daemon:
        await daemon.start()
        yield daemon


@pytest.fixture
async def desk(daemon: Daemon) -> Desk:
    return await daemon.desk()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say aloud what was not tested, and why.

    It is here because the process that prints reads no other conftest when several others test.
    """
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(cast("tuple[str, int, str]", each.longrepr)[2] for each in skipped)
    for reason, count in sorted(reasons.items()):
        told = reason.removeprefix("Skipped: ")
        terminalreporter.write_sep("!", f"{count} tests SKIPPED: {told}", red=True)
