"""The clients in other languages: tests and examples work, the layer over generated code is thin.

That layer is what a program needs to find the daemon, call it and follow it: `clients/go/*.go` and
`clients/typescript/src/*.ts`. The JSON form is for programs that print or read what `crew --json`
does. It stands beside the layer, with a limit of its own: `clients/go/crewdjson` and
`clients/typescript/src/json`. `clients/go/internal` helps the tests only.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.architecture.tools import COMPILING, GO, TYPESCRIPT, complaints, needs_go, needs_node
from tests.support.places import a_daemon

THIN = 400
THIN_JSON = 200
THIN_EXAMPLE = 80
"""Lines of code by hand: without blank ones, comments and imports."""

LAYERS = {
    "typescript": (TYPESCRIPT / "src", THIN),
    "typescript json": (TYPESCRIPT / "src" / "json", THIN_JSON),
    "go": (GO, THIN),
    "go json": (GO / "crewdjson", THIN_JSON),
}
EXAMPLES = {
    "typescript": TYPESCRIPT / "example" / "example.ts",
    "go": GO / "example" / "main.go",
}
RUNS = {
    "typescript": ["npm", "--silent", "--prefix", str(TYPESCRIPT), "run", "example"],
    "go": ["go", "-C", str(GO), "run", "./example"],
}
PRINTED = {
    "typescript": ["ask: asked and answered", "report: released"],
    "go": [
        "decide TASK_STATUS_COMPLETED it was decided",
        "tell TASK_STATUS_COMPLETED done",
    ],
}


@needs_node
@COMPILING
def test_the_typescript_client_passes_its_tests() -> None:
    assert complaints("npm", "--prefix", TYPESCRIPT, "test") == ""


@needs_go
@COMPILING
def test_the_go_client_passes_its_tests() -> None:
    assert complaints("go", "-C", GO, "test", "./...") == ""


@pytest.mark.parametrize(
    "language", [pytest.param("typescript", marks=needs_node), pytest.param("go", marks=needs_go)]
)
@COMPILING
async def test_an_example_runs_and_prints_its_result(language: str) -> None:
    async with a_daemon() as daemon:
        await daemon.start()
        # With this user's home, where compilers keep what they have compiled.
        given = {name: text for name, text in os.environ.items() if not name.startswith("CREWD_")}
        env = {**given, "CREWD_STATE_DIR": str(daemon.state_dir)}
        done = await asyncio.to_thread(
            subprocess.run, RUNS[language], env=env, check=False, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().splitlines()[-2:] == PRINTED[language]


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_an_example_is_short(example: Path) -> None:
    assert 0 < code_lines(example.read_text()) <= THIN_EXAMPLE


@pytest.mark.parametrize(("folder", "most"), LAYERS.values(), ids=LAYERS)
def test_the_layer_over_generated_code_is_thin(folder: Path, most: int) -> None:
    sources = [path for path in folder.iterdir() if path.suffix in {".ts", ".go"}]
    by_hand = [path for path in sources if not path.name.endswith("_test.go")]
    assert 0 < sum(code_lines(path.read_text()) for path in by_hand) <= most


def code_lines(text: str) -> int:
    without = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    without = re.sub(
        r"^import \(.*?^\)|^import [^;]*;", "", without, flags=re.DOTALL | re.MULTILINE
    )
    lines = map(str.strip, without.splitlines())
    return sum(1 for line in lines if line and not line.startswith("//"))
