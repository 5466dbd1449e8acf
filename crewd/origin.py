"""The files that this process was started from: an upgrade replaces them under it."""

from __future__ import annotations

from pathlib import Path

_FIRST = Path(__file__).with_name("__init__.py")


class Origin:
    """Made when the process starts. One file stands for all: an upgrade writes each anew."""

    def __init__(self, file: Path = _FIRST) -> None:
        self._file = file
        self._begun = _stamp(file)

    def is_replaced(self) -> bool:
        """Tell whether another start would have other code."""
        return _stamp(self._file) != self._begun


def _stamp(file: Path) -> tuple[int, int] | None:
    """Return which file is there; None in the moment in which it is being replaced."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns
