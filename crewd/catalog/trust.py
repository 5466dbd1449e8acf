"""Projects whose own files may start programs: one absolute path a line in a private file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

FILE: Final = "trusted"
_PRIVATE: Final = 0o600
_PRIVATE_FOLDER: Final = 0o700


def is_trusted(config_dir: Path, root: Path) -> bool:
    """Tell whether the project may. A file that others can write to trusts nothing."""
    real = _real(root)
    return real is not None and real in _trusted(config_dir)


def trust(config_dir: Path, root: Path) -> bool:
    """Trust a project from now on; false when it was trusted before. Raises `OSError`."""
    real = str(root.resolve(strict=True))
    if "\n" in real:
        raise OSError(None, "its path has a line break, which the list cannot hold", real)
    if real in _trusted(config_dir):
        return False
    config_dir.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    descriptor = os.open(config_dir / FILE, flags, _PRIVATE)
    try:
        if not _is_ours(os.fstat(descriptor)):
            raise PermissionError(None, "others can write to it; look through it, then chmod 600")
        os.fchmod(descriptor, _PRIVATE)
        # In one write: another process may add its own at the same time. The line break before it
        # ends what an editor may have left without one.
        os.write(descriptor, os.fsencode(f"\n{real}\n"))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return True


def _trusted(config_dir: Path) -> frozenset[str]:
    file = config_dir / FILE
    try:
        with file.open("rb") as opened:
            if not _is_ours(os.fstat(opened.fileno())):
                return frozenset()
            return frozenset(os.fsdecode(opened.read()).split("\n"))
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _real(root: Path) -> str | None:
    try:
        return str(root.resolve(strict=True))
    except (OSError, RuntimeError):
        return None
