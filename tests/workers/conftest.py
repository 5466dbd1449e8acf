from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.host.driver import HostUnderTest
from tests.workers.link_user import Daemon


@pytest.fixture
async def state_dir(tmp_path: Path) -> AsyncIterator[Path]:
    """A state directory whose hosts are all ended afterwards."""
    state_dir = tmp_path / "state"
    state_dir.mkdir()
    yield state_dir
    HostUnderTest(state_dir).end_any()


@pytest.fixture
async def daemon(state_dir: Path) -> AsyncIterator[Daemon]:
    daemon = Daemon(state_dir)
    await daemon.up()
    yield daemon
    await daemon.leave()
