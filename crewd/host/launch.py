"""Start one process, or say by name why not."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
from pathlib import Path
from typing import NamedTuple

from crewd.host.messages import RefusedError

_TRANSIENT = {errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
_FAILURES = (OSError, ValueError, subprocess.SubprocessError)
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

    popen: subprocess.Popen[bytes]
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
            _check_directory(order.cwd)
            return self._start(order, opened)
        except _FAILURES as error:
            for descriptor in opened:
                os.close(descriptor)
            raise _refusal(error, order) from error

    def _start(self, order: Order, opened: list[int]) -> Started:
        out, err = _pipe(opened), _pipe(opened)
        feed = _pipe(opened) if order.stdin else None
        # Every descriptor of the host closes on exec, so the child need not look for others to
        # close.
        popen = subprocess.Popen(  # noqa: S603 - to start what it is told is what the host is for
            order.argv,
            cwd=order.cwd,
            env=order.env,
            stdin=self._nothing if feed is None else feed[0],
            stdout=out[1],
            stderr=err[1],
            close_fds=False,
            start_new_session=True,
        )
        os.close(out[1])
        os.close(err[1])
        os.set_blocking(out[0], False)
        os.set_blocking(err[0], False)
        if feed is None:
            return Started(popen, None, out[0], err[0])
        os.close(feed[0])
        os.set_blocking(feed[1], False)
        return Started(popen, feed[1], out[0], err[0])


def _pipe(opened: list[int]) -> tuple[int, int]:
    ends = os.pipe2(os.O_CLOEXEC)
    opened.extend(ends)
    return ends


def _check_directory(cwd: str) -> None:
    if not stat.S_ISDIR(os.stat(cwd).st_mode):  # noqa: PTH116 - a Path costs more than the call
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), cwd)


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
