"""The machine itself: a boot that fails, or is cut short, leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from tests.support.places import a_place
from tests.systemd.machine import CGROUPS, a_machine, eventually, why_not

_A_USER_AS_ROOT: Final = ("unshare", "--user", "--map-root-user")
_BOOT: Final = """
from pathlib import Path
from tests.systemd.machine import a_machine
with a_machine(Path({program!r})):
    pass
"""


@pytest.fixture(autouse=True)
def bootable() -> None:
    problem = why_not()
    if problem:
        pytest.skip(f"no systemd can be booted here: {problem}")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that is the same inside a machine: all may pass it."""
    with a_place() as root:
        root.chmod(0o755)
        yield root


def program(folder: Path, line: str) -> Path:
    """Make what is booted instead of systemd."""
    file = folder / "program"
    file.write_text(f"#!/bin/sh\n{line}\n")
    file.chmod(0o755)
    return file


def cgroups(pid: int) -> list[Path]:
    """Return the cgroups that a process of tests has made."""
    return [path for above in CGROUPS for path in above.glob(f"crewd-test-{pid}-*")]


def commands(cgroup: Path) -> dict[int, str]:
    """Return what runs in a cgroup, by pid."""
    found: dict[int, str] = {}
    for pid in map(int, (cgroup / "cgroup.procs").read_text().split()):
        with suppress(OSError):
            found[pid] = Path(f"/proc/{pid}/comm").read_text().strip()
    return found


def hangs(pid: int) -> bool:
    return any("sleep" in commands(cgroup).values() for cgroup in cgroups(pid))


@pytest.mark.parametrize(
    ("line", "why"), [("echo no luck; exit 1", "no luck"), ("sleep 1000", "systemd runs")]
)
def test_a_machine_that_does_not_boot_says_why_and_leaves_nothing(
    place: Path, line: str, why: str
) -> None:
    with pytest.raises(AssertionError, match=why), a_machine(program(place, line), patience=2):
        pass
    assert cgroups(os.getpid()) == []


def test_a_machine_ends_with_the_process_that_booted_it(place: Path) -> None:
    command = [sys.executable, "-c", _BOOT.format(program=str(program(place, "sleep 1000")))]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(place)}
    with subprocess.Popen(command, env=env) as test:
        eventually(lambda: test.poll() is not None or hangs(test.pid), "it boots")
        (cgroup,) = cgroups(test.pid)
        test.kill()
    try:
        eventually(lambda: not commands(cgroup), "all of it has ended", seconds=10)
    finally:
        for pid in commands(cgroup):
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: not commands(cgroup), "all of it was ended")
        cgroup.rmdir()


def test_who_is_root_of_few_users_only_cannot_boot_one() -> None:
    look = "from tests.systemd.machine import why_not; print(why_not())"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    if subprocess.run([*_A_USER_AS_ROOT, "true"], check=False).returncode:
        pytest.skip("no user namespaces")
    done = subprocess.run(
        [*_A_USER_AS_ROOT, sys.executable, "-c", look], env=env, capture_output=True, check=True
    )
    assert done.stdout.startswith(b"needs ")
