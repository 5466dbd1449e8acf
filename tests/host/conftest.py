from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.driver import Controller, HostUnderTest


@pytest.fixture
def host(tmp_path: Path) -> Iterator[HostUnderTest]:
    """A host of its own for the test, not started yet."""
    host = HostUnderTest(tmp_path / "state")
    yield host
    host.end()


@pytest.fixture
def controller(host: HostUnderTest) -> Controller:
    """The controller of a started host."""
    host.start()
    return host.controller()
