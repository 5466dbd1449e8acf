from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.rpc.world import World, a_world


@pytest.fixture
async def world() -> AsyncIterator[World]:
    # A socket's path has room for 107 bytes, which the folders of pytest may use up.
    with TemporaryDirectory(prefix="crewd-") as folder:
        async with a_world(Path(folder)) as made:
            yield made
