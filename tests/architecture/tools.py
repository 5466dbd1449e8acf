"""Runs the development tools, those of the tests' virtual environment and of other languages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

BIN = Path(sys.executable).parent
GO = ROOT / "clients" / "go"
TYPESCRIPT = ROOT / "clients" / "typescript"

COMPILING = pytest.mark.timeout(900)
"""For what compiles all it is made of when it runs for the first time on a machine."""

needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="the Go client needs go")
needs_node = pytest.mark.skipif(
    not (TYPESCRIPT / "node_modules" / "ready").exists() or shutil.which("npm") is None,
    reason="the TypeScript client needs npm, and what `make test` installs with it",
)


def complaints(*command: str | Path) -> str:
    """Run a tool from the top of the repository; give what it says if it is not content."""
    done = subprocess.run(
        command, cwd=ROOT, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return (done.stdout or f"exit code {done.returncode}") if done.returncode else ""
