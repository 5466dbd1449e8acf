"""Trouble of a runner is told, though every scenario that it reports is fine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance import sides
from tests.conformance.reports import Result, State

FINE = {"a/b": Result(State.OK)}
NODE = """for each; do case $each in *=*.xml) to=${each#*=} ;; esac; done
echo '<testsuites><testcase name="a/b"/></testsuites>' > "$to"
exit $CODE"""
GO = """echo '{"Action": "pass", "Test": "TestConformance/a/b"}'
echo '{"Action": "output", "Test": "TestConformance", "Output": "the stage: exit 3"}'
exit $CODE"""


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a client whose tools say that the one scenario is fine, and end with $CODE."""
    for program, text in {"bin/node": NODE, "bin/go": GO, "node_modules/.bin/tsc": ""}.items():
        write(tmp_path / program, text)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(sides, "TYPESCRIPT", tmp_path)
    monkeypatch.setattr(sides, "GO", tmp_path)
    return tmp_path


def write(program: Path, text: str) -> None:
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)


@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize(("side", "name"), [("typescript", "node --test"), ("go", "go test")])
def test_how_a_runner_ends_counts(
    client: Path, monkeypatch: pytest.MonkeyPatch, side: str, name: str, code: int
) -> None:
    monkeypatch.setenv("CODE", str(code))
    report = sides.SIDES[side](client)
    assert report.results == FINE
    assert report.troubles == ((f"{name} ended with 1",) if code else ())
    assert report.said == ("the stage: exit 3" if side == "go" else "")


def test_what_was_built_before_is_not_run_when_a_build_fails(
    client: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODE", "0")
    write(client / "node_modules/.bin/tsc", "echo 'error TS2322'; [ $2 = tsconfig.json ]")
    report = sides.typescript(client)
    assert report.results == {}
    assert report.troubles == ("tsc --project tsconfig.test.json ended with 1",)
    assert "error TS2322" in report.said
