"""One daemon per state directory and per socket, and the file by which others find it.

Both locks belong to the kernel: they end with the process however it ends, and nobody removes
their files.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import socket as sockets
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from filelock import FileLock, Timeout

from crewd.paths import write_private
from crewd.refusal import Refusal, refusing
from crewd_client.locate import MAX_SOCKET_BYTES, DaemonFile, LocateError, make_socket_dir

# Who looks at a lock holds it shared for some microseconds: that is not a holder.
_TRIES = 5
_PAUSE_SECONDS = 0.01
_TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The process that holds a lock, as it wrote itself beside the lock."""

    pid: int
    version: str
    socket: str
    state_dir: str

    def __str__(self) -> str:
        return f"pid {self.pid}, version {self.version}, socket {self.socket}"


class Lock:
    """A lock on a file, held until `release` or until the process is gone."""

    __slots__ = ("_held", "path")

    def __init__(self, path: Path, held: FileLock) -> None:
        self.path = path
        self._held = held

    def sign(self, holder: Holder) -> None:
        """Write beside the lock who holds it: taking a lock may empty its file."""
        signature = _signature(self.path)
        with refusing("cannot write", signature):
            write_private(signature, json.dumps(asdict(holder)))

    def release(self) -> None:
        self._held.release()


def try_lock(path: Path) -> Lock | None:
    """Take a lock, or return None when another process holds it."""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE_SECONDS)
        with refusing("cannot lock", path):
            _check_owner(path)
            held = FileLock(path, mode=0o600, thread_local=False)
            try:
                held.acquire(blocking=False)
            except Timeout:
                continue
            return Lock(path, held)
    return None


def holder(path: Path) -> Holder | None:
    """Tell who holds a lock; a holder that did not say has pid 0. None: nobody does."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if _is_free(descriptor):
            return None
    finally:
        os.close(descriptor)
    try:
        return _parse(_signature(path).read_bytes())
    except OSError:
        return _UNKNOWN


def lock_state(path: Path, me: Holder) -> Lock:
    """Take the lock of the state directory; refuse when a daemon has it."""
    lock = try_lock(path)
    if lock is None:
        other = holder(path) or _UNKNOWN
        raise Refusal(
            f"a daemon runs already for {me.state_dir}: {other}",
            hint=f"use it (`crewd status`), end it (`crewd stop --state-dir {me.state_dir}`), "
            "or start this one with another --state-dir",
        )
    lock.sign(me)
    return lock


def lock_socket(socket: Path, me: Holder) -> Lock:
    """Take the lock beside a socket and clear away what a killed daemon left at its path."""
    if len(os.fsencode(socket)) > MAX_SOCKET_BYTES:
        raise Refusal(
            f"the path of the socket is too long: {len(os.fsencode(socket))} bytes, "
            f"at most {MAX_SOCKET_BYTES}: {socket}",
            hint="name a shorter one with --socket or CREWD_SOCKET",
        )
    _make_directory(socket)
    path = socket.with_name(f"{socket.name}.lock")
    lock = try_lock(path)
    if lock is None:
        other = holder(path) or _UNKNOWN
        raise Refusal(
            f"a daemon of another state directory ({other.state_dir}) uses this socket: {other}",
            hint="name another socket with --socket or CREWD_SOCKET, or end that daemon",
        )
    try:
        lock.sign(me)
        _clear(socket)
    except Refusal:
        lock.release()
        raise
    return lock


@contextmanager
def announced(path: Path, daemon: DaemonFile) -> Generator[None]:
    """Keep daemon.json for as long as the daemon can be reached; leave a successor's alone."""
    with refusing("cannot write", path):
        write_private(path, daemon.text())
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            if DaemonFile.parse(path.read_text(encoding="utf-8")).instance_id == daemon.instance_id:
                path.unlink()


def operator_token(path: Path) -> str:
    """Return the token every call must carry; the first daemon of a state directory makes it."""
    return _secret(path, "token")


def read_token(path: Path) -> str:
    """Return the token that is there now, which may be another than at the start."""
    return _read_secret(path, "token")


def task_key(path: Path) -> bytes:
    """Return what the tokens of workers are made with; made like the operator's token."""
    return _secret(path, "key").encode()


def _secret(path: Path, what: str) -> str:
    with refusing(f"cannot read the {what}", path):
        try:
            path.lstat()
        except FileNotFoundError:
            write_private(path, secrets.token_urlsafe(_TOKEN_BYTES) + "\n")
    return _read_secret(path, what)


def _read_secret(path: Path, what: str) -> str:
    with refusing(f"cannot read the {what}", path):
        try:
            found = path.lstat()
        except FileNotFoundError:
            raise Refusal(f"the {what} {path} is gone", hint="the next start makes one") from None
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise Refusal(
                f"others can read or change the {what} {path}",
                hint=f"remove it, the next start makes a new one: rm {path}",
            )
        secret = path.read_text(encoding="ascii", errors="replace").strip()
    if not secret:
        raise Refusal(f"the {what} {path} is empty", hint=f"remove it: rm {path}")
    return secret


_UNKNOWN = Holder(pid=0, version="unknown", socket="unknown", state_dir="unknown")


def _signature(path: Path) -> Path:
    return path.with_name(f"{path.name}.holder")


def _check_owner(path: Path) -> None:
    with suppress(FileNotFoundError):
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise PermissionError(errno.EPERM, "it is no plain file")
        if found.st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "it belongs to another user")


def _is_free(descriptor: int) -> bool:
    """Look without taking it: the kind of lock that `FileLock` takes on this system."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _parse(content: bytes) -> Holder:
    try:
        data = cast("dict[str, object]", json.loads(content))
        return Holder(
            pid=int(str(data["pid"])),
            version=str(data["version"]),
            socket=str(data["socket"]),
            state_dir=str(data["state_dir"]),
        )
    except (ValueError, KeyError, TypeError):
        return _UNKNOWN


def _make_directory(socket: Path) -> None:
    hint = "name a socket in a directory of your own with --socket or CREWD_SOCKET"
    try:
        make_socket_dir(socket)
    except (LocateError, OSError) as error:
        raise Refusal(f"the directory of the socket cannot be used: {error}", hint=hint) from error


def _clear(socket: Path) -> None:
    """Remove the socket file of a killed daemon: who has the lock is the only one of us."""
    with refusing("cannot use the socket", socket):
        try:
            found = socket.lstat()
        except FileNotFoundError:
            return
        if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
            raise Refusal(
                f"{socket} is there already and is no socket of ours",
                hint="name another socket with --socket or CREWD_SOCKET",
            )
        if _answers(socket):
            raise Refusal(
                f"another program listens at {socket}",
                hint="name another socket with --socket or CREWD_SOCKET",
            )
        socket.unlink()


def _answers(socket: Path) -> bool:
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(os.fspath(socket))
        except BlockingIOError:
            return True  # Its queue is full: somebody is there.
        except OSError:
            return False
        return True
