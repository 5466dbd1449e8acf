from __future__ import annotations

import os
import re

from crewd.doctor.examine import examine
from crewd.doctor.finding import Severity
from tests.doctor.patient import Patient


def test_a_place_in_order_has_neither_errors_nor_warnings(patient: Patient) -> None:
    patient.database()
    patient.vary(deep=True)
    found = list(examine(patient.place))
    bad = [f for f in found if f.severity in {Severity.ERROR, Severity.WARNING}]
    assert bad == []
    assert all(re.fullmatch(r"[a-z_]+\.[a-z_-]+", finding.id) for finding in found)


def test_a_check_that_cannot_look_is_a_finding_and_the_others_go_on(patient: Patient) -> None:
    marker = patient.place.hosts.marker
    marker.parent.mkdir()
    marker.mkdir()
    found = list(examine(patient.place))
    (failed,) = (finding for finding in found if finding.id == "doctor.orphans")
    assert failed.severity is Severity.ERROR
    assert "`processes` could not look" in failed.message
    assert found[-1].id == "catalog.read"


def test_nothing_is_changed_by_looking(patient: Patient) -> None:
    patient.database()
    patient.host().controller()

    def everything() -> list[tuple[str, list[str]]]:
        return sorted((folder, sorted(names)) for folder, _, names in os.walk(patient.state_dir))

    before = everything()
    list(examine(patient.place))
    assert everything() == before
