"""The hand-written Python of this repository, for the tests of its shape."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "python" / "src" / "crewd_client"
FOLDERS = (ROOT / "crewd", CLIENT, ROOT / "proto", ROOT / "tests")
GENERATED = (ROOT / "crewd" / "v1", CLIENT / "v1")


def modules() -> list[Path]:
    """Give every module that a person wrote."""
    found = (path for folder in FOLDERS for path in folder.rglob("*.py"))
    return sorted(path for path in found if not any(g in path.parents for g in GENERATED))


def name(path: Path) -> str:
    """Name a file by its place in the repository."""
    return str(path.relative_to(ROOT))
