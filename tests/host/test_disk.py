from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.driver import HostUnderTest

JOB = "run/task/1"
DISK_BYTES = 1 << 20


@pytest.fixture
def small_host(tmp_path: Path) -> Iterator[HostUnderTest]:
    """A host whose state directory is a disk of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("needs root and a kernel that lets it mount a tmpfs")
    host = HostUnderTest(disk)
    host.start()
    yield host
    host.end()
    subprocess.run(["umount", str(disk)], check=True)


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
