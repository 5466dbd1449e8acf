"""Where crewd keeps its things: there, ours alone, and short enough."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from crewd.doctor.finding import Check, Finding, Place, error, info, ok, quoted, warning
from crewd_client.locate import MAX_SOCKET_BYTES, private_dir_problem, runtime_dir

_OTHERS: Final = 0o077
_WRITE: Final = 0o022


def state_dir(place: Place) -> Iterator[Finding]:
    root = place.state_dir
    if not root.exists():
        yield info(
            id="state_dir.permissions",
            message=f"there is no state directory {root} yet: no daemon has run for it",
            command=place.crewd("ensure"),
        )
        return
    yield _private(root, "state_dir.permissions", "the state directory")


def secrets(place: Place) -> Iterator[Finding]:
    """Look at the files whose readers could act as the operator, or read what workers said."""
    paths, hosts = place.paths, place.hosts
    files = (paths.token, paths.root / "task.key", hosts.key, hosts.marker, paths.database)
    there = [file for file in files if os.path.lexists(file)]
    bad = [finding for file in there if (finding := _file(file)) is not None]
    yield from bad
    if there and not bad:
        yield ok(
            id="state_dir.files",
            message="token, keys and database are readable by their owner only",
        )


def runtime(place: Place) -> Iterator[Finding]:
    named = place.env.get("XDG_RUNTIME_DIR", "")
    usual = f"/run/user/{os.getuid()}"
    command = f"export XDG_RUNTIME_DIR={usual}" if Path(usual).is_dir() else ""
    unset = "unset XDG_RUNTIME_DIR"
    if not named:
        yield info(
            id="runtime_dir.present",
            message="XDG_RUNTIME_DIR is not set: sockets are in the state directory, or in a "
            "directory of this user below the temporary one when that path is too long",
            command=command or place.crewd("status"),
        )
    elif runtime_dir(place.env) is None:
        yield warning(
            id="runtime_dir.present",
            message=f"XDG_RUNTIME_DIR is {named!r}, which is no directory; it is not used, and "
            "programs that see another value look for the daemon elsewhere",
            command=command or unset,
        )
    else:
        found = (Path(named), "runtime_dir.present", "XDG_RUNTIME_DIR")
        yield _private(*found, otherwise=unset)


def socket(place: Place) -> Iterator[Finding]:
    if place.socket is None:
        yield error(
            id="socket.place",
            message=f"the daemon's socket is not at a safe place: {place.socket_problem}",
            command="export CREWD_SOCKET=$HOME/.crewd.sock",
        )
        return
    size = len(os.fsencode(place.socket))
    details = {"socket": str(place.socket), "bytes": str(size)}
    if size > MAX_SOCKET_BYTES:
        yield error(
            id="socket.place",
            message=f"the socket's path has {size} bytes, the most is {MAX_SOCKET_BYTES}: "
            f"{place.socket}",
            command="unset CREWD_SOCKET",
            details=details,
        )
        return
    problem = private_dir_problem(place.socket.parent)
    if problem is not None:
        yield error(
            id="socket.place",
            message=f"the daemon's socket is not safe: {problem}",
            command=f"chmod 700 {quoted(place.socket.parent)}",
            details=details,
        )
    else:
        yield ok(id="socket.place", message=f"the socket is {place.socket}", details=details)


def _private(directory: Path, identity: str, what: str, *, otherwise: str = "") -> Finding:
    """Judge a directory. `otherwise` is what to do when its mode cannot be mended."""
    found = directory.lstat()
    mode = stat.S_IMODE(found.st_mode)
    details = {"path": str(directory), "mode": f"{mode:04o}", "owner": str(found.st_uid)}
    problem = private_dir_problem(directory)
    command = f"chmod 700 {quoted(directory)}"
    if problem is not None:
        ours = found.st_uid == os.getuid() and stat.S_ISDIR(found.st_mode)
        return error(
            id=identity,
            message=f"{what} is not safe: {problem}",
            command=command if ours else otherwise,
            details=details,
        )
    if mode & _OTHERS:
        return warning(
            id=identity,
            message=f"{what} {directory} can be read by others",
            command=command,
            details=details,
        )
    return ok(id=identity, message=f"{what} {directory} is this user's alone", details=details)


def _file(file: Path) -> Finding | None:
    found = file.lstat()
    mode = stat.S_IMODE(found.st_mode)
    details = {"path": str(file), "mode": f"{mode:04o}", "owner": str(found.st_uid)}
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
        what = "is no plain file" if found.st_uid == os.getuid() else "belongs to another user"
        return error(id="state_dir.files", message=f"{file} {what}", details=details)
    if not mode & _OTHERS:
        return None
    done = "changed" if mode & _WRITE else "read"
    return error(
        id="state_dir.files",
        message=f"{file} can be {done} by others",
        command=f"chmod 600 {quoted(file)}",
        details=details,
    )


CHECKS: Final[tuple[Check, ...]] = (state_dir, secrets, runtime, socket)
