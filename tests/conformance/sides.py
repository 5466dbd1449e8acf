"""The clients' own runners: each is started as its developers start it, and its report is read."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.sources import ROOT
from tests.architecture.tools import GO, TYPESCRIPT
from tests.conformance.reports import GO_TEST, Report, beside_go, from_go, from_junit


def python(folder: Path) -> Report:
    xml = folder / "python.xml"
    tests = ROOT / "tests" / "conformance" / "test_python.py"
    done = _run("pytest", [sys.executable, "-m", "pytest", "-q", f"--junitxml={xml}", tests], ROOT)
    return Report(from_junit(xml), done.said, done.troubles)


def typescript(folder: Path) -> Report:
    tsc = TYPESCRIPT / "node_modules" / ".bin" / "tsc"
    node = shutil.which("node")
    if node is None or not tsc.exists():
        return Report(absent="node is not installed" if node is None else f"{tsc} is not there")
    for project in _PROJECTS:
        built = _run(f"tsc --project {project}", [tsc, "--project", project], TYPESCRIPT)
        if built.troubles:
            # What was built before is of other sources.
            return Report(said=built.said, troubles=built.troubles)
    xml = folder / "typescript.xml"
    options = ["--test", "--test-reporter=junit", f"--test-reporter-destination={xml}"]
    test = [node, *options, "dist-test/test/conformance.test.js"]
    done = _run("node --test", test, TYPESCRIPT)
    return Report(from_junit(xml), done.said, done.troubles)


def go(_folder: Path) -> Report:
    program = shutil.which("go")
    if program is None:
        return Report(absent="go is not installed")
    test = [program, "test", "-json", "-count=1", "-run", f"^{GO_TEST}$", "./..."]
    done = _run("go test", test, GO)
    return Report(from_go(done.said), beside_go(done.said), done.troubles)


SIDES: Mapping[str, Callable[[Path], Report]] = {
    "python": python,
    "typescript": typescript,
    "go": go,
}
_PROJECTS = ("tsconfig.json", "tsconfig.test.json")


@dataclass(frozen=True, slots=True)
class _Done:
    said: str
    troubles: tuple[str, ...]


def _run(name: str, command: Sequence[str | Path], cwd: Path) -> _Done:
    done = subprocess.run(
        command, cwd=cwd, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    troubles = (f"{name} ended with {done.returncode}",) if done.returncode else ()
    return _Done(done.stdout, troubles)
