"""Become the one host of a state directory, and leave nothing behind when done."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import NoReturn

from crewd.host.home import FileId, file_id
from crewd.host.journal import Journal
from crewd.host.marks import Marks
from crewd.host.messages import line
from crewd.host.notify import take_address, tell_ready
from crewd.host.owners import Owners
from crewd.host.protocol import EXIT_ANOTHER_HOST, PROTOCOL, VERSION, HostPaths, secret
from crewd.host.server import Host, Settings
from crewd.host.strays import kill_strays
from crewd.host.tree import become_subreaper

_BACKLOG = 64
_LOCK_SECONDS = 0.3
_LOCK_PAUSE_SECONDS = 0.01
_FIRST_INHERITED = 3


def serve(state_dir: Path, settings: Settings) -> None:
    """Run the host of this state directory until it ends by itself or is told to."""
    paths = HostPaths(state_dir)
    manager = take_address()
    _leave_inheritance()
    paths.make_private()
    locks = _lock(paths)
    epoch = os.urandom(8).hex()
    store_marker = secret(paths.marker)
    owners = Owners(Marks(store_marker), store_marker)
    journal = Journal(paths.journal, epoch)
    become_subreaper()
    strays = kill_strays(owners.marks, store_marker, journal.lost)
    host = Host(paths, epoch, owners=owners, journal=journal, settings=settings)
    listener = _listen(paths)
    socket_id = file_id(paths.socket)
    _write_info(paths, epoch)
    tell_ready(manager)
    host.run(listener, strays)
    _clean_up(paths, epoch, socket_id)
    for descriptor in locks:
        os.close(descriptor)


def _leave_inheritance() -> None:
    os.closerange(_FIRST_INHERITED, os.sysconf("SC_OPEN_MAX"))
    os.chdir("/")


def _lock(paths: HostPaths) -> tuple[int, int]:
    """Take the lock of the state directory, then the one beside the socket, or end the process."""
    return _locked(paths.lock, paths), _locked(paths.socket.with_suffix(".lock"), paths)


def _locked(path: Path, paths: HostPaths) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    give_up_at = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # Who looks whether a host lives holds it for an instant, and one that ends for a few.
            if time.monotonic() > give_up_at:
                _end_for_another(path, paths)
            time.sleep(_LOCK_PAUSE_SECONDS)
        else:
            return descriptor


def _end_for_another(path: Path, paths: HostPaths) -> NoReturn:
    try:
        info = json.loads(paths.info.read_bytes())
        other = f"pid {info['pid']}, version {info['version']}, socket {info['socket']}"
    except (OSError, ValueError, KeyError, TypeError):
        other = "still starting or ending"
    sys.stderr.write(f"crewd host: another host holds {path}: {other}\n")
    sys.exit(EXIT_ANOTHER_HOST)


def _listen(paths: HostPaths) -> socket.socket:
    paths.socket.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(os.fspath(paths.socket))
    finally:
        os.umask(before)
    listener.listen(_BACKLOG)
    return listener


def _write_info(paths: HostPaths, epoch: str) -> None:
    draft = paths.info.with_suffix(".new")
    draft.write_bytes(
        line(
            {
                "pid": os.getpid(),
                "version": VERSION,
                "protocol": PROTOCOL,
                "epoch": epoch,
                "socket": str(paths.socket),
                "start_time": round(time.time(), 3),
            }
        )
    )
    draft.chmod(0o600)
    draft.replace(paths.info)


def _clean_up(paths: HostPaths, epoch: str, socket_id: FileId | None) -> None:
    """Remove the socket and host.json, unless somebody has put others in their place."""
    if socket_id is not None and file_id(paths.socket) == socket_id:
        paths.socket.unlink(missing_ok=True)
    try:
        own = json.loads(paths.info.read_bytes())["epoch"] == epoch
    except (OSError, ValueError, KeyError, TypeError):
        return
    if own:
        paths.info.unlink(missing_ok=True)
