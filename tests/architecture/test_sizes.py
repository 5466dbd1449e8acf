"""Keep modules and functions small enough to read in one sitting."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, modules, name

MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_TEST_LINES = 30
MAX_CLASS_LINES = 250


@pytest.mark.parametrize("module", modules(), ids=name)
def test_module_is_small(module: Path) -> None:
    text = module.read_text()
    assert text.count("\n") <= MAX_MODULE_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert _lines(node) <= _most_lines(module, node.name), node.name
        elif isinstance(node, ast.ClassDef):
            assert _lines(node) <= MAX_CLASS_LINES, node.name


def _most_lines(module: Path, function: str) -> int:
    is_test = ROOT / "tests" in module.parents and function.startswith("test_")
    return MAX_TEST_LINES if is_test else MAX_FUNCTION_LINES


def _lines(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1
