"""Opening a worker's file beneath its task's directory, and nothing else, whatever it is made of.

Every component of the path is opened from the directory before it, so none of them can lead away:
not by `..`, not by a symbolic link, not by one that is put there between a look and the opening.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_DIRECTORY: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KINDS: Final = {
    stat.S_IFDIR: "is a directory; pack it into one file, or name the files in it",
    stat.S_IFLNK: "is a symbolic link; name the file it leads to, or copy it",
    stat.S_IFIFO: "is a pipe; write it to a file",
    stat.S_IFSOCK: "is a socket; name a file",
    stat.S_IFCHR: "is a device; name a file",
    stat.S_IFBLK: "is a device; name a file",
}


class SourceRefusedError(Exception):
    """A file is not taken. The message names it and tells the way out."""


@contextmanager
def opened_beneath(root: Path, path: str) -> Generator[int]:
    """Give a regular file's descriptor. `path` is relative to `root`, or absolute inside it."""
    *folders, name = _components(root, path)
    with _refusing(path):
        folder = os.open(root, _DIRECTORY)
        try:
            for component in folders:
                inner = os.open(component, _DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                os.close(folder)
                folder = inner
            # Looked at first: to open a device may do something already.
            _check(path, os.stat(name, dir_fd=folder, follow_symlinks=False))
            file = os.open(name, _FILE, dir_fd=folder)
        finally:
            os.close(folder)
    try:
        _check(path, os.fstat(file))
        yield file
    finally:
        os.close(file)


def read_source(file: int, path: str, position: int, limit: int) -> bytes:
    """Return what is there; an error of the worker's disk is no error of ours."""
    with _refusing(path):
        return os.pread(file, limit, position)


def _components(root: Path, path: str) -> Sequence[str]:
    if "\0" in path:
        raise SourceRefusedError(f"{path!a} has a NUL character; rename the file")
    if path.startswith("/"):
        path = _inside(root, path)
    components = [part for part in path.split("/") if part not in {"", "."}]
    if not components:
        raise SourceRefusedError(f"{path or '.'} is a directory; name a file in it")
    if ".." in components:
        raise SourceRefusedError(f"{path} has a `..`; name it from the task's directory {root} on")
    return components


def _inside(root: Path, path: str) -> str:
    """Return the path from the directory on, whichever of its names the worker knows it by."""
    for known in (str(root), os.path.realpath(root)):
        if path.startswith(f"{known.rstrip('/')}/"):
            return path[len(known) :]
    raise SourceRefusedError(f"{path} is not in the task's directory {root}; copy it there first")


def _check(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        why = _KINDS.get(stat.S_IFMT(found.st_mode), "is no regular file")
        raise SourceRefusedError(f"{path} {why}")


@contextmanager
def _refusing(path: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise SourceRefusedError(f"{path} {_trouble(error)}") from error


def _trouble(error: OSError) -> str:
    match error.errno:
        case errno.ENOENT:
            return "is not there; write it before it is handed in"
        case errno.ENOTDIR | errno.ELOOP:
            return "has a part that is no directory, or a symbolic link; name it without"
        case errno.EACCES | errno.EPERM:
            return "may not be read; change its mode"
        case _:
            return f"cannot be read: {error.strerror}"
