"""Installs from the package index as pip is configured on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

UNREACHABLE: Final = "pip cannot reach a package index"
_PROBE: Final = "click==8.1.8"
PATIENCE: Final = 300.0
"""For an index that is far away, and a machine that has much else to do."""


class Venv:
    """A virtual environment with nothing in it, not even pip: that of the tests works on it."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)

    def install(self, *arguments: str | Path) -> None:
        done = _pip("--python", self.bin / "python", "install", *arguments)
        assert done.returncode == 0, done.stderr

    def run(self, *command: str, home: Path) -> subprocess.CompletedProcess[str]:
        """Run one of its programs with nothing in the environment but this and the system."""
        return subprocess.run(
            [self.bin / command[0], *command[1:]],
            cwd=home,
            env=self.env(home),
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def env(self, home: Path) -> dict[str, str]:
        return {"HOME": str(home), "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin"}


def unreachable(place: Path) -> str:
    """Return why nothing comes from the index, or nothing if something does."""
    how = ("--no-deps", "--no-cache-dir", "--retries=0", "--timeout=20", "--dest", place)
    done = _pip("download", *how, _PROBE)
    return done.stderr.strip().rpartition("\n")[2] if done.returncode else ""


def _pip(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    given = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-m", "pip", "--quiet", "--no-input", *arguments],
        env=given,
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
