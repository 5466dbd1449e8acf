"""The machine is booted once; where there can be none, the reason is that of the skip."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.systemd.machine import Machine, a_machine, why_not


@pytest.fixture(scope="module")
def booted() -> Iterator[Machine]:
    problem = why_not()
    if problem:
        pytest.skip(f"no systemd can be booted here: {problem}")
    with a_machine() as machine:
        yield machine


@pytest.fixture
def machine(booted: Machine) -> Iterator[Machine]:
    """A machine on which nothing of crewd is installed and nothing has run."""
    booted.clear()
    yield booted
    booted.clear()


@pytest.fixture
def served(booted: Machine) -> Iterator[Machine]:
    """A machine whose user has installed the units and started them."""
    booted.serve()
    yield booted
    if not booted.is_as_served():
        booted.reset()
