from __future__ import annotations

import os
from pathlib import Path

import pytest

from crewd.doctor import places
from crewd.doctor.finding import Severity
from tests.doctor.patient import Patient


def test_a_state_directory_in_order_is_well(patient: Patient) -> None:
    patient.database()
    for check in places.CHECKS:
        assert patient.is_well(check), check


def test_no_state_directory_is_no_error(patient: Patient) -> None:
    patient.vary(state_dir=patient.root / "none")
    found = patient.one(places.state_dir, "state_dir.permissions")
    assert found.severity is Severity.INFO
    assert found.command == f"crewd ensure --state-dir {patient.root}/none"
    assert patient.found(places.secrets) == []


@pytest.mark.parametrize(
    ("mode", "severity"),
    [(0o750, Severity.WARNING), (0o705, Severity.WARNING), (0o770, Severity.ERROR)],
)
def test_a_state_directory_that_others_can_enter_is_told_and_mended(
    patient: Patient, mode: int, severity: Severity
) -> None:
    patient.state_dir.chmod(mode)
    found = patient.one(places.state_dir, "state_dir.permissions")
    assert (found.severity, found.details["mode"]) == (severity, f"{mode:04o}")
    assert patient.mended(places.state_dir, found)


def test_a_state_directory_that_is_a_link_is_an_error_that_a_person_must_mend(
    patient: Patient,
) -> None:
    (patient.root / "link").symlink_to(patient.state_dir)
    patient.vary(state_dir=patient.root / "link")
    found = patient.one(places.state_dir, "state_dir.permissions")
    assert (found.severity, found.command) == (Severity.ERROR, "")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o622])
@pytest.mark.parametrize("name", ["token", "task.key", "crewd.db", "host/key", "host/marker"])
def test_a_secret_that_others_can_open_is_an_error(patient: Patient, name: str, mode: int) -> None:
    file = patient.state_dir / name
    file.parent.mkdir(exist_ok=True)
    file.touch()
    file.chmod(mode)
    found = patient.one(places.secrets, "state_dir.files")
    assert found.severity is Severity.ERROR
    assert found.details == {"path": str(file), "mode": f"{mode:04o}", "owner": str(os.getuid())}
    assert patient.mended(places.secrets, found)


def test_a_secret_that_is_a_link_is_an_error(patient: Patient) -> None:
    token = patient.place.paths.token
    token.rename(token.with_name("other"))
    token.symlink_to("other")
    found = patient.one(places.secrets, "state_dir.files")
    assert (found.severity, found.message) == (Severity.ERROR, f"{token} is no plain file")


def test_an_unset_runtime_directory_is_worth_knowing(patient: Patient) -> None:
    patient.set(XDG_RUNTIME_DIR="")
    found = patient.one(places.runtime, "runtime_dir.present")
    assert found.severity is Severity.INFO
    assert found.command


@pytest.mark.parametrize("named", ["run", "/no/such/directory"])
def test_a_runtime_directory_that_is_none_is_a_warning(patient: Patient, named: str) -> None:
    patient.set(XDG_RUNTIME_DIR=named)
    found = patient.one(places.runtime, "runtime_dir.present")
    assert (found.severity, named in found.message) == (Severity.WARNING, True)
    assert "XDG_RUNTIME_DIR" in found.command


def test_a_runtime_directory_that_cannot_be_mended_is_an_error_to_do_without(
    patient: Patient,
) -> None:
    link = patient.root / "link"
    link.symlink_to(patient.root / "run")
    patient.set(XDG_RUNTIME_DIR=str(link))
    found = patient.one(places.runtime, "runtime_dir.present")
    assert (found.severity, found.command) == (Severity.ERROR, "unset XDG_RUNTIME_DIR")


def test_a_runtime_directory_of_everybody_is_an_error(patient: Patient) -> None:
    (patient.root / "run").chmod(0o777)
    found = patient.one(places.runtime, "runtime_dir.present")
    assert found.severity is Severity.ERROR
    assert patient.mended(places.runtime, found)


def test_a_socket_at_no_safe_place_is_an_error(patient: Patient) -> None:
    patient.vary(socket=None, socket_problem="it belongs to user 1")
    found = patient.one(places.socket, "socket.place")
    assert found.severity is Severity.ERROR
    assert found.message.endswith("it belongs to user 1")


def test_the_path_of_a_socket_must_fit(patient: Patient) -> None:
    patient.vary(socket=patient.root / ("x" * 100))
    found = patient.one(places.socket, "socket.place")
    assert (found.severity, found.command) == (Severity.ERROR, "unset CREWD_SOCKET")


def test_a_socket_in_a_directory_of_everybody_is_an_error(patient: Patient) -> None:
    open_to_all = patient.root / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    patient.vary(socket=open_to_all / "crewd.sock")
    found = patient.one(places.socket, "socket.place")
    assert found.severity is Severity.ERROR
    assert patient.mended(places.socket, found)


def test_a_command_can_be_typed_whatever_the_path_is(patient: Patient) -> None:
    patient.vary(state_dir=Path(patient.root / "it's a $HOME"))
    patient.place.paths.make()
    patient.place.state_dir.chmod(0o750)
    found = patient.one(places.state_dir, "state_dir.permissions")
    assert patient.mended(places.state_dir, found)
