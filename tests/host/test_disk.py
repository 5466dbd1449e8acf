from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from crewd.host.disk import Reserve
from tests.host.driver import HostUnderTest

JOB = "run/task/1"
DISK_BYTES = 1 << 20


@pytest.fixture
def unstarted_host(tmp_path: Path) -> Iterator[HostUnderTest]:
    """A host, not started yet, whose state directory is a disk of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("needs root and a kernel that lets it mount a tmpfs")
    host = HostUnderTest(disk)
    yield host
    host.end()
    subprocess.run(["umount", str(disk)], check=True)


@pytest.fixture
def small_host(unstarted_host: HostUnderTest) -> HostUnderTest:
    """A host on a small disk that it may fill to the last byte."""
    unstarted_host.start("--reserve", "0")
    return unstarted_host


def test_a_full_disk_holds_output_back_and_loses_none(small_host: HostUnderTest) -> None:
    controller = small_host.controller()
    filler = small_host.paths.root / "filler"
    filler.write_bytes(b"x" * (DISK_BYTES // 2))

    controller.shell(JOB, f"head -c {DISK_BYTES * 3 // 4} /dev/zero | tr '\\0' y; exit 2")
    assert "No space left" in controller.wait("disk")["message"]
    filler.unlink()

    controller.wait("disk_ok")
    seen = controller.wait_exit(JOB)
    assert (seen["exit_code"], seen["stdout"]) == (2, DISK_BYTES * 3 // 4)
    assert small_host.spooled(JOB) == b"y" * (DISK_BYTES * 3 // 4)


def test_a_stopped_job_does_not_wait_for_the_disk(small_host: HostUnderTest) -> None:
    controller = small_host.controller()
    controller.shell(JOB, "yes")
    controller.wait("disk")

    controller.ask("stop", job=JOB, grace_ms=0)

    assert controller.wait_exit(JOB)["stopped"]
    assert controller.ask("shutdown", stop_jobs=True)["ok"]
    assert small_host.wait() == 0


def test_output_leaves_a_reserve_on_the_disk(unstarted_host: HostUnderTest) -> None:
    reserve, size = DISK_BYTES // 2, DISK_BYTES // 2
    unstarted_host.start("--reserve", str(reserve))
    controller = unstarted_host.controller()
    filler = unstarted_host.paths.root / "filler"
    filler.write_bytes(b"x" * (DISK_BYTES // 4))

    controller.shell(JOB, f"head -c {size} /dev/zero | tr '\\0' y")
    assert "No space left" in controller.wait("disk")["message"]
    assert free_bytes(filler) > reserve - (1 << 17)
    filler.unlink()
    subprocess.run(["mount", "-o", "remount,size=4m", filler.parents[1]], check=True)

    controller.wait("disk_ok")
    assert controller.wait_exit(JOB)["stdout"] == size
    assert unstarted_host.spooled(JOB) == b"y" * size


def test_the_disk_is_not_looked_at_for_each_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Mock(wraps=os.statvfs)
    monkeypatch.setattr(os, "statvfs", look)
    reserve = Reserve(tmp_path, 0)

    for _ in range(1000):
        reserve.claim(10)
    assert look.call_count == 1
    reserve.claim(1 << 16)
    assert look.call_count == 2


def free_bytes(path: Path) -> int:
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize
