"""Wheels are built once; what is installed with them comes from the package index."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.build import build_wheel
from tests.packaging.index import UNREACHABLE, unreachable
from tests.packaging.projects import CLIENT, DAEMON


@pytest.fixture(scope="session")
def daemon_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(DAEMON.folder, tmp_path_factory.mktemp("daemon"))


@pytest.fixture(scope="session")
def client_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(CLIENT.folder, tmp_path_factory.mktemp("client"))


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip what needs the package index where it is out of reach."""
    problem = unreachable(tmp_path_factory.mktemp("probe"))
    if problem:
        pytest.skip(f"{UNREACHABLE}: {problem}")
