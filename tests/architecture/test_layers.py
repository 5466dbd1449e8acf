"""Imports point one way; `.importlinter` says which."""

from __future__ import annotations

from tests.architecture.tools import BIN, complaints


def test_imports_keep_their_direction() -> None:
    assert complaints(BIN / "lint-imports", "--no-cache") == ""
