"""Tell whether the place that this host serves is still there."""

from __future__ import annotations

from pathlib import Path

FileId = tuple[int, int]


class Home:
    """A state directory, known by the lock that is held in it."""

    def __init__(self, lock: Path) -> None:
        self._lock = lock
        self._id = file_id(lock)

    def is_there(self) -> bool:
        """Tell whether the lock is where it was; what cannot be looked at may come back."""
        try:
            return file_id(self._lock) == self._id
        except OSError:
            return True


def file_id(path: Path) -> FileId | None:
    """Return what tells a file from all others, or None when there is none."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino
