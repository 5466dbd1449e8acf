"""Start one process, or say by name why not."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path
from typing import NamedTuple

from crewd.host.messages import RefusedError

_TRANSIENT = {errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
_FAILURES = (OSError, ValueError)
_DEFAULT_SIGNALS = tuple(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
"""A worker inherits no signal as ignored, neither from the host nor from whoever started it."""
_NOT_EXECUTABLE = {errno.EACCES, errno.ENOEXEC, errno.EISDIR, errno.EPERM}


class Order(NamedTuple):
    """What to start."""

    job: str
    argv: list[str]
    cwd: str
    env: dict[str, str]
    stdin: bool
    keep_children: bool


class Started(NamedTuple):
    """A new process, and our ends of its pipes."""

    pid: int
    stdin: int | None
    stdout: int
    stderr: int


class Launcher:
    def __init__(self) -> None:
        self._nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def start(self, order: Order) -> Started:
        """Start the process or raise RefusedError; a failed start leaves nothing open."""
        opened: list[int] = []
        try:
            return self._start(order, opened)
        except _FAILURES as error:
            for descriptor in opened:
                os.close(descriptor)
            raise _refusal(error, order) from error

    def _start(self, order: Order, opened: list[int]) -> Started:
        out, err = _pipe(opened), _pipe(opened)
        feed = _pipe(opened) if order.stdin else None
        ends = (self._nothing if feed is None else feed[0], out[1], err[1])
        pid = _spawn(order, ends)
        os.close(out[1])
        os.close(err[1])
        os.set_blocking(out[0], False)
        os.set_blocking(err[0], False)
        if feed is None:
            return Started(pid, None, out[0], err[0])
        os.close(feed[0])
        os.set_blocking(feed[1], False)
        return Started(pid, feed[1], out[0], err[0])


def _pipe(opened: list[int]) -> tuple[int, int]:
    ends = os.pipe2(os.O_CLOEXEC)
    opened.extend(ends)
    return ends


def _spawn(order: Order, ends: tuple[int, int, int]) -> int:
    """Start it in a session of its own, with these as its three standard descriptors.

    Every other descriptor of the host closes on exec. posix_spawn knows no directory, and the
    host has one thread: it goes there for as long as the call takes.
    """
    os.chdir(order.cwd)
    try:
        return os.posix_spawn(
            order.argv[0],
            order.argv,
            order.env,
            file_actions=[(os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate(ends)],
            setsid=True,
            setsigmask=(),
            setsigdef=_DEFAULT_SIGNALS,
        )
    finally:
        os.chdir("/")


def _refusal(error: Exception, order: Order) -> RefusedError:
    if not isinstance(error, OSError):
        return RefusedError("spawn", f"cannot be started: {error}")
    program = order.argv[0]
    reason = error.strerror or str(error)
    code = errno.errorcode.get(error.errno or 0, "")
    if error.errno in _TRANSIENT:
        return RefusedError("transient", f"cannot start a process now: {reason}", errno=code)
    if error.filename == order.cwd:
        return RefusedError("cwd_missing", f"working directory {order.cwd}: {reason}", errno=code)
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        what = "its interpreter is missing" if Path(program).exists() else "no such file"
        return RefusedError("executable_missing", f"{program}: {what}", errno=code)
    if error.errno in _NOT_EXECUTABLE:
        return RefusedError("not_executable", f"{program}: {reason}", errno=code)
    return RefusedError("spawn", f"{program}: {reason}", errno=code)
