from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crewd.doctor import limits, service
from crewd.doctor.finding import Severity
from crewd.systemd.units import HOST_UNIT, UNIT, Installation, this_command, unit_folder, write
from tests.doctor.patient import Patient


def install(patient: Patient, **changes: object) -> Path:
    """Have units, those that `crewd service install` would write but for the changes."""
    patient.set(PATH=str(patient.root))  # No systemd: whoever runs the tests may have a real one.
    installation = Installation(
        command=this_command(), state_dir=patient.state_dir, env=patient.place.env
    )
    folder = unit_folder(patient.place.env)
    changed = replace(installation, **changes)  # type: ignore[arg-type]
    write(folder, changed.texts(sandbox=False))
    return folder


def test_without_units_there_is_nothing_to_say(patient: Patient) -> None:
    assert [f for check in service.CHECKS for f in patient.found(check)] == []


def test_units_of_this_crewd_are_well(patient: Patient) -> None:
    folder = install(patient)
    assert patient.one(service.units, "service.unit").severity is Severity.OK
    assert patient.one(service.units, "service.enabled").severity is Severity.INFO
    (folder / "default.target.wants").mkdir()
    (folder / "default.target.wants" / UNIT).symlink_to(folder / UNIT)
    assert patient.is_well(service.units)


def test_units_of_another_installation_are_stale(patient: Patient) -> None:
    install(patient, command=("/gone/crewd",))
    found = patient.one(service.units, "service.unit")
    assert (found.severity, found.details["stale"]) == (Severity.WARNING, f"{UNIT} {HOST_UNIT}")
    assert found.command == f"crewd service install --state-dir {patient.state_dir}"


def test_units_of_another_state_directory_are_only_named(patient: Patient) -> None:
    install(patient, state_dir=patient.root / "other")
    found = patient.one(service.units, "service.unit")
    assert (found.severity, found.command) == (Severity.INFO, "")
    assert str(patient.root / "other") in found.message
    assert patient.found(service.state) == []


def test_a_manager_that_cannot_be_reached_is_a_warning(patient: Patient) -> None:
    install(patient)
    found = patient.one(service.state, "service.manager")
    assert found.severity is Severity.WARNING
    assert "systemctl is not on PATH" in found.message


def test_what_a_logout_ends_is_a_warning_where_units_keep_the_daemon(patient: Patient) -> None:
    patient.vary(system=patient.root)
    (patient.root / "run/systemd/system").mkdir(parents=True)
    install(patient)
    found = patient.one(limits.logout, "logout.linger")
    assert (found.severity, found.command) == (Severity.WARNING, "loginctl enable-linger")
    linger = patient.root / "var/lib/systemd/linger"
    linger.mkdir(parents=True)
    (linger / "ada").touch()
    assert patient.is_well(limits.logout)
