"""Code is made for the languages whose generators are there; what is left out is said."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

NODE_SCRIPT = Path("clients", "typescript", "node_modules", ".bin", "protoc-gen-es")
LEFT_OUT = [
    "WARNING: typescript is left out: protoc-gen-es is not there",
    "WARNING: go is left out: protoc-gen-go is not there",
]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Make a checkout with the contract alone: neither Node nor Go has installed anything."""
    shutil.copytree(ROOT / "proto", tmp_path / "proto")
    return tmp_path


def generate(checkout: Path, *options: str, path: str = os.defpath) -> tuple[int, list[str]]:
    """Return the exit code, and what is said."""
    done = subprocess.run(
        [sys.executable, "proto/generate.py", *options],
        cwd=checkout,
        env={"PATH": path},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr.splitlines()


def test_a_language_without_its_generators_is_left_out_and_named(checkout: Path) -> None:
    assert generate(checkout) == (0, LEFT_OUT)
    assert (checkout / "crewd" / "v1" / "run_pb2.py").exists()
    assert generate(checkout, "--check") == (0, LEFT_OUT)
    (checkout / "crewd" / "v1" / "run_pb2.py").write_text("")
    stale = "crewd/v1/run_pb2.py: not as generated, run `make proto`"
    assert generate(checkout, "--check") == (1, [*LEFT_OUT, stale])


def test_what_node_has_installed_is_of_no_use_without_node(checkout: Path) -> None:
    (checkout / NODE_SCRIPT).parent.mkdir(parents=True)
    (checkout / NODE_SCRIPT).touch()
    code, said = generate(checkout, "--only", "typescript", path="")
    assert (code, said) == (1, ["error: no code for typescript can be made: node is not there"])


def test_a_language_that_is_asked_for_must_be_made(checkout: Path) -> None:
    code, said = generate(checkout, "--check", "--only", "go")
    assert (code, said) == (1, ["error: no code for go can be made: protoc-gen-go is not there"])
    assert generate(checkout, "--only", "python") == (0, [])


def test_a_contract_that_cannot_be_read_is_said_without_a_traceback(checkout: Path) -> None:
    (checkout / "proto" / "crewd" / "v1" / "run.proto").write_text("nonsense")
    code, said = generate(checkout, "--only", "python")
    assert (code, said[-1]) == (1, "error: protoc ended with 1")
    assert [line for line in said if "Traceback" in line] == []
