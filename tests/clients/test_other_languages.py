"""The clients in other languages: their tests pass, and the layer over generated code is thin."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.tools import COMPILING, GO, TYPESCRIPT, complaints, needs_go, needs_node

THIN = 400
"""Lines of code by hand: without blank ones, comments and imports."""


@needs_node
@COMPILING
def test_the_typescript_client_passes_its_tests() -> None:
    assert complaints("npm", "--prefix", TYPESCRIPT, "test") == ""


@needs_go
@COMPILING
def test_the_go_client_passes_its_tests() -> None:
    assert complaints("go", "-C", GO, "test", "./...") == ""


@pytest.mark.parametrize("folder", [TYPESCRIPT / "src", GO], ids=["typescript", "go"])
def test_the_layer_over_generated_code_is_thin(folder: Path) -> None:
    sources = [path for path in folder.iterdir() if path.suffix in {".ts", ".go"}]
    by_hand = [path for path in sources if not path.name.endswith("_test.go")]
    assert by_hand
    assert sum(code_lines(path.read_text()) for path in by_hand) <= THIN


def code_lines(text: str) -> int:
    without = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    without = re.sub(
        r"^import \(.*?^\)|^import [^;]*;", "", without, flags=re.DOTALL | re.MULTILINE
    )
    lines = map(str.strip, without.splitlines())
    return sum(1 for line in lines if line and not line.startswith("//"))
