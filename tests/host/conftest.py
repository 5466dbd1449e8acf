from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.driver import Controller, HostUnderTest
from tests.host.echo import Echo


@pytest.fixture
def host(tmp_path: Path) -> Iterator[HostUnderTest]:
    """A host of its own for the test, not started yet."""
    host = HostUnderTest(tmp_path / "state")
    yield host
    host.end()


@pytest.fixture(scope="session")
def lasting_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostUnderTest]:
    """One started host for all tests that leave nothing in it."""
    host = HostUnderTest(tmp_path_factory.mktemp("lasting") / "state")
    host.start("--idle-exit", "600")
    yield host
    host.end()


@pytest.fixture
def asker(lasting_host: HostUnderTest) -> Controller:
    """A controller of the lasting host."""
    return lasting_host.controller()


@pytest.fixture
def controller(host: HostUnderTest) -> Controller:
    """The controller of a started host."""
    host.start()
    return host.controller()


@pytest.fixture
def echo(host: HostUnderTest, controller: Controller) -> Echo:
    """A process of that host which says what it hears."""
    return Echo(host, controller)
