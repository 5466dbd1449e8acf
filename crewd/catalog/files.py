"""Files of a catalog, read so that nothing in a project can make the daemon read elsewhere."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from crewd.catalog.findings import Findings
from crewd.catalog.values import Problem, Severity, Source

FILE_BYTES: Final = 256 * 1024
FOLDER_FILES: Final = 500
FOLDER_CHARACTERS: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Place:
    """A folder to look into."""

    folder: Path
    source: Source
    root: Path
    """A project's file may not lead out of this directory by symbolic links."""
    foreign: bool = False
    """Written for another program."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file that was read."""

    path: Path
    place: Place
    text: str


def names_in(folder: Path, wanted: Callable[[str], bool]) -> tuple[list[str], list[Problem]]:
    """Return the names in order; a folder that is not there has none."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if wanted(entry.name))
    except (FileNotFoundError, NotADirectoryError):
        return [], []
    except OSError as error:
        return [], [_problem(folder, f"cannot be listed: {error.strerror}")]
    if len(names) <= FOLDER_FILES:
        return names, []
    left = f"holds {len(names)} files; only the first {FOLDER_FILES} were read"
    return names[:FOLDER_FILES], [_problem(folder, left)]


def may_be(path: Path) -> bool:
    """Tell whether something is there, or cannot be looked at; reading it tells which."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def read(path: Path, place: Place) -> Found | Problem:
    """Read a text file, or say why not."""
    try:
        real = path.resolve(strict=True)
        if place.source is Source.PROJECT and not real.is_relative_to(place.root.resolve()):
            return _problem(path, f"is a link that leads out of {place.root}", "copy the file")
        data = _bytes(real)
    except (OSError, RuntimeError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return _problem(path, f"cannot be read: {said}")
    if data is None:
        return _problem(path, "is no regular file")
    if len(data) > FILE_BYTES:
        return _problem(path, f"has more than {FILE_BYTES // 1024} KiB", "make it shorter")
    return _text(path, place, data)


def _text(path: Path, place: Place, data: bytes) -> Found | Problem:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        return _problem(path, "is not UTF-8 text", "save it as UTF-8", line)
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        return _problem(path, "is not text: it has a NUL character", line=line)
    return Found(path, place, text)


def too_much(folder: Path) -> Problem:
    """Say that a folder holds more than is read."""
    most = FOLDER_CHARACTERS // 1024 // 1024
    return _problem(folder, f"holds more than {most} MiB; the rest was not read")


def findings_of(found: Found) -> Findings:
    return Findings(spelled(found.path))


def spelled(path: Path) -> str:
    """Return the path as text that can be sent, whatever bytes its name has."""
    return os.fsencode(path).decode(errors="replace")


def _bytes(real: Path) -> bytes | None:
    # Without O_NONBLOCK a pipe would hold us until somebody writes to it.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(real, flags)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(FILE_BYTES + 1)
    finally:
        os.close(descriptor)


def _problem(path: Path, message: str, fix: str = "", line: int = 1) -> Problem:
    return Problem(spelled(path), line, Severity.ERROR, message, fix)
