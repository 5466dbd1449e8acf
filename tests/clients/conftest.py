from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.clients.support.fake_daemon import FakeDaemon


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[FakeDaemon]:
    async with FakeDaemon(tmp_path / "state") as fake:
        yield fake
