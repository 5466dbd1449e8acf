from __future__ import annotations

from pathlib import Path

import pytest

from crewd.doctor import programs
from crewd.doctor.finding import Severity
from crewd.workers.programs import INSTALL
from tests.doctor.patient import Patient

AGENTS = sorted(INSTALL)


def program(patient: Patient, name: str, script: str) -> Path:
    folder = patient.root / "bin"
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    patient.set(PATH=f"{folder}:bin:/usr/bin:/bin")
    return file


@pytest.mark.parametrize("name", AGENTS)
def test_a_program_that_is_missing_comes_with_the_way_to_get_it(
    patient: Patient, name: str
) -> None:
    patient.set(PATH="/nowhere")
    found = patient.one(programs.programs, f"program.{name}")
    assert (found.severity, found.command) == (Severity.INFO, INSTALL[name])
    assert found.details["path"] == "/nowhere"


def test_a_program_tells_its_version_and_where_it_is(patient: Patient) -> None:
    file = program(patient, "pi", "echo; echo ' 0.84.4 '; echo more")
    found = patient.one(programs.programs, "program.pi")
    assert (found.severity, found.message) == (Severity.OK, "pi 0.84.4")
    assert found.details == {"file": str(file), "version": "0.84.4"}


def test_only_absolute_entries_of_path_are_searched(patient: Patient) -> None:
    program(patient, "pi", "echo 1")
    patient.set(PATH="bin:.")
    assert patient.one(programs.programs, "program.pi").details["path"] == ""


def test_a_program_that_fails_is_no_error_of_crewd(patient: Patient) -> None:
    program(patient, "codex", "echo oops; exit 3")
    assert patient.one(programs.programs, "program.codex").severity is Severity.INFO


def test_a_program_that_hangs_is_ended_with_all_it_started(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_VERSION_SECONDS", 0.2)
    program(patient, "gemini", "sleep 600 & sleep 600")
    found = patient.one(programs.programs, "program.gemini")
    assert (found.severity, found.details["version"]) == (Severity.INFO, "")
    assert "does not tell its version" in found.message
