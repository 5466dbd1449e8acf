from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalog.places import Places


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)
