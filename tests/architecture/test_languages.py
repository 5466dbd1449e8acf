"""The sources in other languages are as their own tools want them."""

from __future__ import annotations

import subprocess

from tests.architecture.tools import COMPILING, GO, TYPESCRIPT, complaints, needs_go, needs_node


@needs_go
def test_go_is_formatted() -> None:
    done = subprocess.run(["gofmt", "-l", GO], check=True, capture_output=True, text=True)
    assert done.stdout == ""


@needs_go
@COMPILING
def test_go_is_vetted() -> None:
    assert complaints("go", "-C", GO, "vet", "./...") == ""


@needs_node
def test_typescript_has_the_types_it_says() -> None:
    tsc = TYPESCRIPT / "node_modules" / ".bin" / "tsc"
    assert complaints(tsc, "--noEmit", "--project", TYPESCRIPT) == ""


@needs_node
def test_typescript_is_formatted() -> None:
    assert complaints("npm", "--prefix", TYPESCRIPT, "run", "check") == ""
