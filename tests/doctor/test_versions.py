from __future__ import annotations

import pytest

from crewd.doctor import versions
from crewd.doctor.finding import Severity
from tests.doctor.patient import Patient


def test_what_crewd_runs_on_here_is_no_error(patient: Patient) -> None:
    found = [f for check in versions.CHECKS for f in patient.found(check)]
    assert {"python.version", "sqlite.version", "package.grpcio", "package.protobuf"} <= {
        finding.id for finding in found
    }
    assert [f for f in found if f.severity in {Severity.ERROR, Severity.WARNING}] == []


@pytest.mark.parametrize(
    ("version", "severity"),
    [
        ("3.36.0", Severity.ERROR),
        ("3.37.0", Severity.INFO),
        ("3.44.5", Severity.INFO),
        ("3.44.6", Severity.OK),
        ("3.45.0", Severity.INFO),
        ("3.50.6", Severity.INFO),
        ("3.50.7", Severity.OK),
        ("3.51.2", Severity.INFO),
        ("3.51.3", Severity.OK),
        ("3.54.1", Severity.OK),
    ],
)
def test_an_sqlite_is_judged_by_the_faults_it_has(version: str, severity: Severity) -> None:
    found = versions.judge_sqlite(version)
    assert found.severity is severity
    assert bool(found.command) is (severity is not Severity.OK)


@pytest.mark.parametrize(
    ("wanted", "severity"),
    [
        ("", Severity.OK),
        (">=1.0", Severity.OK),
        (">=1.0,<1000", Severity.OK),
        (">=1000", Severity.ERROR),
        ("<1.0,>=0.1", Severity.ERROR),
        ("==1000.0", Severity.ERROR),
    ],
)
def test_a_package_is_compared_with_what_crewd_wants(wanted: str, severity: Severity) -> None:
    found = versions.judge_package("grpcio", wanted)
    assert (found.id, found.severity) == ("package.grpcio", severity)
    assert bool(found.command) is (severity is Severity.ERROR)


def test_a_package_that_is_missing_comes_with_the_command_that_installs_it() -> None:
    found = versions.judge_package("no-such-package-of-anybody", ">=1.2")
    assert found.severity is Severity.ERROR
    assert found.command.endswith("-m pip install 'no-such-package-of-anybody>=1.2'")


@pytest.mark.parametrize(
    ("version", "numbers"), [("1.2.3", (1, 2, 3)), ("1.76.0rc1", (1, 76, 0)), ("", ())]
)
def test_a_version_is_compared_by_its_numbers(version: str, numbers: tuple[int, ...]) -> None:
    assert versions.numbers(version) == numbers
