from __future__ import annotations

from pathlib import Path

import pytest

from crewd.doctor import disk
from crewd.doctor.finding import Severity
from crewd.host.disk import RESERVE_BYTES
from tests.doctor.patient import Patient


def test_a_disk_with_room_is_well(patient: Patient) -> None:
    patient.vary(deep=True)
    ids = [finding.id for check in disk.CHECKS for finding in patient.found(check)]
    assert ids == ["disk.space", "disk.usage", "disk.filesystem", "disk.sync"]


def test_the_disk_of_a_state_directory_to_be_is_that_of_its_parent(patient: Patient) -> None:
    patient.vary(state_dir=patient.root / "none" / "at" / "all", deep=True)
    assert patient.one(disk.space, "disk.space").details["free_bytes"] != "0"
    assert patient.found(disk.usage) == []
    assert patient.one(disk.sync, "disk.sync").details.keys() == {"median_ms", "worst_ms"}


def test_a_disk_is_measured_only_when_asked(patient: Patient) -> None:
    assert patient.found(disk.sync) == []


@pytest.mark.parametrize(
    ("free", "severity"),
    [
        (RESERVE_BYTES - 1, Severity.ERROR),
        (RESERVE_BYTES, Severity.WARNING),
        (16 * RESERVE_BYTES, Severity.OK),
    ],
)
def test_little_room_is_a_warning_and_less_than_the_reserve_an_error(
    free: int, severity: Severity
) -> None:
    found = disk.judge_space(free, Path("/state"))
    assert (found.severity, found.details["free_bytes"]) == (severity, str(free))
    assert found.command == ("" if severity is Severity.OK else "df -h /state")


def test_what_takes_room_is_told_by_kind(patient: Patient) -> None:
    (patient.state_dir / "transcripts" / "run_1").mkdir()
    (patient.state_dir / "transcripts" / "run_1" / "a").write_bytes(b"x" * 1000)
    (patient.state_dir / "crewd.db-wal").write_bytes(b"x" * 10)
    found = patient.one(disk.usage, "disk.usage")
    assert (found.details["transcripts"], found.details["database"]) == ("1000", "10")


@pytest.mark.parametrize(
    ("mounts", "severity"),
    [
        ("/dev/a / ext4 rw 0 0\nserver:/home {root} nfs4 rw 0 0\n", Severity.ERROR),
        ("server:/ / nfs4 rw 0 0\ntmpfs {root} tmpfs rw 0 0\n", Severity.OK),
        ("server:/ {root}x nfs4 rw 0 0\n/dev/a / ext4 rw 0 0\n", Severity.OK),
        ("tmpfs {root} tmpfs rw 0 0\nserver:/home {root} cifs rw 0 0\n", Severity.ERROR),
    ],
)
def test_a_disk_of_another_machine_is_an_error(
    patient: Patient, mounts: str, severity: Severity
) -> None:
    (patient.root / "proc").mkdir()
    (patient.root / "proc" / "mounts").write_text(mounts.format(root=patient.root))
    patient.vary(system=patient.root)
    assert patient.one(disk.filesystem, "disk.filesystem").severity is severity
