"""What the daemon and its command refuse: what is wrong and the way out."""

from __future__ import annotations

import errno
from collections.abc import Generator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path


class Exit(IntEnum):
    """The exit codes of `crewd`."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_RUNNING = 3
    NOT_READY = 4
    NO_DAEMON = 5
    REFUSED = 6
    BUG = 70
    TIMED_OUT = 124
    INTERRUPTED = 130
    TERMINATED = 143


class Refusal(Exception):  # noqa: N818 - it is an answer, not a failure of ours
    """Says what cannot be done, why, and what the person can do about it."""

    def __init__(self, message: str, *, hint: str = "", exit_code: Exit = Exit.REFUSED) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_WRITE = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def refusing(what: str, path: Path) -> Generator[None]:
    """Turn what the system says about a path into a refusal; `what` reads "cannot ..."."""
    try:
        yield
    except OSError as error:
        raise Refusal(
            f"{what} {path}: {error.strerror or error}", hint=_hint(error.errno)
        ) from error


def _hint(code: int | None) -> str:
    if code in _FULL:
        return "the disk is full: free some space there, or name another place with --state-dir"
    if code in _NO_WRITE:
        return "name a place you can write to with --state-dir or CREWD_STATE_DIR"
    return "name another place with --state-dir or CREWD_STATE_DIR"
