"""Fixtures for tests that need a real daemon."""

from __future__ import annotations

from collections.abc import AsyncIterator

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
