from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.doctor.patient import Patient
from tests.support.places import a_place


@pytest.fixture
def patient() -> Iterator[Patient]:
    """A state directory in order, in which no daemon has run."""
    with a_place() as root:
        patient = Patient(root)
        try:
            yield patient
        finally:
            patient.end()
