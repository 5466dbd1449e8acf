"""Runs the development tools of the virtual environment that the tests run in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.architecture.sources import ROOT

BIN = Path(sys.executable).parent


def complaints(*command: str | Path) -> str:
    """Run a tool from the top of the repository; give what it says if it is not content."""
    done = subprocess.run(
        command, cwd=ROOT, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return (done.stdout or f"exit code {done.returncode}") if done.returncode else ""
