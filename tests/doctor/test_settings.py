from __future__ import annotations

import pytest

from crewd.doctor import catalog, settings
from crewd.doctor.finding import Severity
from tests.doctor.patient import Patient


def test_a_home_without_files_for_crewd_is_nothing_to_say(patient: Patient) -> None:
    assert [f for check in settings.CHECKS for f in patient.found(check)] == []


def test_the_names_of_the_env_file_are_told_and_never_a_value(patient: Patient) -> None:
    patient.config("env", "B_KEY=hunter2\nA_KEY=hunter2\n")
    found = patient.one(settings.env_file, "env_file.usable")
    assert (found.severity, found.details["names"]) == (Severity.OK, "A_KEY B_KEY")
    assert "hunter2" not in repr(found)


def test_an_env_file_that_others_can_read_is_an_error(patient: Patient) -> None:
    patient.config("env", "A=b\n", mode=0o644)
    found = patient.one(settings.env_file, "env_file.usable")
    assert found.severity is Severity.ERROR
    assert patient.mended(settings.env_file, found)


def test_an_env_file_that_cannot_be_read_is_an_error_with_its_line(patient: Patient) -> None:
    file = patient.config("env", "A=b\nhunter2\n")
    found = patient.one(settings.env_file, "env_file.usable")
    assert found.message.startswith(f"{file} line 2 is no NAME=value")
    assert found.command == ""


def test_trusted_projects_that_are_there_are_well(patient: Patient) -> None:
    patient.config("trusted", f"{patient.root}\n\n{patient.state_dir}\n")
    found = patient.one(settings.trusted, "trusted.missing")
    assert found.message == "2 trusted projects, all there"


@pytest.mark.parametrize("name", ["gone", "a.b*c", "it's [a] ^$place", "back\\slash", "a|b"])
def test_a_trusted_project_that_is_gone_is_taken_off_by_the_command(
    patient: Patient, name: str
) -> None:
    kept = f"{patient.state_dir}\n"
    file = patient.config("trusted", f"{patient.root}/{name}\n{kept}")
    found = patient.one(settings.trusted, "trusted.missing")
    assert (found.severity, found.details["project"]) == (
        Severity.WARNING,
        f"{patient.root}/{name}",
    )
    assert patient.mended(settings.trusted, found)
    assert file.read_text() == kept


def test_a_list_of_trusted_projects_that_others_can_change_is_an_error(patient: Patient) -> None:
    patient.config("trusted", f"{patient.root}\n", mode=0o666)
    found = patient.one(settings.trusted, "trusted.permissions")
    assert found.severity is Severity.ERROR
    assert patient.mended(settings.trusted, found)


def test_what_is_wrong_with_the_files_of_a_project_is_told_with_file_and_line(
    patient: Patient,
) -> None:
    agents = patient.root / "project" / ".crew" / "agents"
    agents.mkdir(parents=True)
    (agents / "bad.md").write_text("---\nname: [not, a, name]\n---\ntext\n")
    inside = patient.root / "project" / "src"
    inside.mkdir()
    patient.vary(cwd=inside)
    problems = [f for f in patient.found(catalog.files) if f.id == "catalog.problem"]
    assert str(agents / "bad.md") in {problem.details["file"] for problem in problems}
    command = f"crew --state-dir {patient.state_dir} validate {inside}"
    assert {problem.command for problem in problems} == {command}


def test_what_there_is_to_make_runs_from_is_counted(patient: Patient) -> None:
    found = patient.one(catalog.files, "catalog.read")
    assert found.severity is Severity.OK
    assert found.details.keys() == {"agents", "teams", "workflows", "skills"}
