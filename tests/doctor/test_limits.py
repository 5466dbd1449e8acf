from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from crewd.doctor import limits
from crewd.doctor.finding import Severity
from tests.doctor.patient import Patient


@pytest.mark.parametrize(
    ("soft", "severity"), [(255, Severity.WARNING), (65536, Severity.OK), (-1, Severity.OK)]
)
def test_few_open_files_are_a_warning(patient: Patient, soft: int, severity: Severity) -> None:
    found = limits.judge_open_files(patient.place, "this shell", soft)
    assert (found.severity, found.details["limit"]) == (severity, str(soft))


def test_the_limit_is_that_of_the_daemon_where_one_runs(patient: Patient) -> None:
    own = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert patient.one(limits.open_files, "limits.open_files").details["limit"] == str(own)
    pid = patient.child("import time; time.sleep(600)")
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (64, 64))
    patient.hold(pid=pid)
    found = patient.one(limits.open_files, "limits.open_files")
    assert (found.severity, found.details["limit"]) == (Severity.WARNING, "64")
    assert found.message.startswith(f"the daemon, pid {pid}, may open 64 files")


def test_a_system_without_room_for_marks_is_told(patient: Patient) -> None:
    script = (
        "import os, resource\nfrom pathlib import Path\nfrom crewd.doctor import limits\n"
        "from crewd.doctor.finding import Place\n"
        "resource.setrlimit(resource.RLIMIT_RTTIME, (1000000, 1000000))\n"
        "(found,) = limits.marks(Place(env={}, state_dir=Path('/')))\n"
        "print(found.severity, found.details['hard_limit'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "warning 1000000\n"
    assert patient.one(limits.marks, "limits.marks").severity is not Severity.ERROR


def test_what_a_logout_does_is_told_where_systemd_runs(patient: Patient) -> None:
    patient.vary(system=patient.root)
    assert patient.found(limits.logout) == []
    (patient.root / "run/systemd/system").mkdir(parents=True)
    found = patient.one(limits.logout, "logout.linger")
    assert (found.severity, found.command) == (Severity.INFO, "loginctl enable-linger")
    linger = patient.root / "var/lib/systemd/linger"
    linger.mkdir(parents=True)
    (linger / "ada").touch()
    assert patient.is_well(limits.logout)
    patient.set(USER="../ada")
    assert patient.found(limits.logout) == []
