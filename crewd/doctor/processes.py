"""The daemon and its host: whether they run, are of this version, and answer."""

from __future__ import annotations

import json
import os
import socket as sockets
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, cast

from crewd import __version__
from crewd.doctor.finding import Check, Finding, Place, error, info, ok, quoted, warning
from crewd.host.protocol import PROTOCOL as HOST_PROTOCOL
from crewd.host.protocol import VERSION as HOST_VERSION
from crewd.instance import Holder, holder
from crewd.life import PROTOCOL
from crewd_client.locate import DaemonFile

_ANSWER_SECONDS: Final = 2.0
_ANSWER_BYTES: Final = 1 << 16


def daemon(place: Place) -> Iterator[Finding]:
    found = holder(place.paths.lock)
    told = _daemon_file(place)
    if isinstance(told, Finding):
        yield told
        told = None
    if found is None:
        yield from _no_daemon(place, told)
        return
    details = {"pid": str(found.pid), "version": found.version, "socket": found.socket}
    if _is_stopped(found.pid):
        yield error(
            id="daemon.running",
            message=f"the daemon, pid {found.pid}, was stopped by a signal and does nothing",
            command=f"kill -CONT {found.pid}",
            details=details,
        )
        return
    yield ok(id="daemon.running", message=f"a daemon runs: {found}", details=details)
    yield from _same_daemon(place, found, told)


def daemon_socket(place: Place) -> Iterator[Finding]:
    """Tell whether somebody listens; whether the daemon answers is asked of itself."""
    found = holder(place.paths.lock)
    if place.socket is None:
        return
    problem = _unreachable(place.socket)
    if found is not None and problem:
        yield error(
            id="daemon.socket",
            message=f"the daemon, pid {found.pid}, is not at {place.socket} ({problem}): it is "
            "only just starting or ending, or its socket was removed or is another one",
            command=f"{place.crewd('stop')}; {place.crewd('ensure')}",
            details={"socket": str(place.socket), "pid": str(found.pid)},
        )
    elif found is None and not problem:
        yield warning(
            id="daemon.socket",
            message=f"somebody listens at {place.socket} who is not the daemon of "
            f"{place.state_dir}: CREWD_SOCKET names another daemon, or another program took it",
            command="crewd where",
            details={"socket": str(place.socket)},
        )


def host(place: Place) -> Iterator[Finding]:
    paths = place.hosts
    if holder(paths.lock) is None:
        yield info(
            id="host.running",
            message="no host runs, so no worker does either; the daemon starts it by itself",
        )
        return
    told = _host_file(paths.info)
    pid = told.get("pid", "")
    if pid.isdigit() and _is_stopped(int(pid)):
        yield error(
            id="host.running",
            message=f"the host, pid {pid}, was stopped by a signal and does nothing",
            command=f"kill -CONT {pid}",
            details=told,
        )
    elif problem := _silent_host(paths.socket):
        yield error(
            id="host.running",
            message=f"the host, pid {pid or 'unknown'}, does not answer: {problem}; its log is "
            f"{paths.log}",
            command=f"kill -9 {pid}; {place.crewd('ensure')}" if pid.isdigit() else "",
            details=told,
        )
    else:
        yield ok(id="host.running", message=f"the host runs, pid {pid}, and answers", details=told)
    yield from _same_host(place, told)


def _no_daemon(place: Place, told: DaemonFile | None) -> Iterator[Finding]:
    yield info(
        id="daemon.running",
        message=f"no daemon runs for {place.state_dir}",
        command=place.crewd("ensure"),
    )
    if told is not None:
        yield warning(
            id="daemon.file",
            message=f"{place.paths.daemon_file} was left by a daemon that did not end in order "
            f"(pid {told.pid}); the next start replaces it",
            command=place.crewd("ensure"),
            details={"pid": str(told.pid), "instance_id": told.instance_id},
        )


def _same_daemon(place: Place, found: Holder, told: DaemonFile | None) -> Iterator[Finding]:
    restart = f"{place.crewd('stop')}; {place.crewd('ensure')}"
    if told is not None and found.pid and told.pid != found.pid:
        yield warning(
            id="daemon.file",
            message=f"{place.paths.daemon_file} names pid {told.pid}, but the daemon is pid "
            f"{found.pid}: it is only just starting, or could not write the file",
            command=restart,
            details={"pid": str(told.pid), "holder": str(found.pid)},
        )
    version, protocol = found.version, told.protocol if told is not None else PROTOCOL
    details = {"daemon": version, "installed": __version__, "protocol": str(protocol)}
    if version == __version__ and protocol == PROTOCOL:
        yield ok(id="daemon.version", message=f"the daemon is {version}", details=details)
    else:
        yield warning(
            id="daemon.version",
            message=f"the daemon is {version} (protocol {protocol}), installed is {__version__} "
            f"(protocol {PROTOCOL}): restart it; workers go on meanwhile",
            command=restart,
            details=details,
        )


def _same_host(place: Place, told: dict[str, str]) -> Iterator[Finding]:
    version, protocol = told.get("version", ""), told.get("protocol", "")
    if not version:
        return
    if (version, protocol) == (HOST_VERSION, str(HOST_PROTOCOL)):
        yield ok(id="host.version", message=f"the host is {version}", details=told)
    else:
        yield warning(
            id="host.version",
            message=f"the host is {version} (protocol {protocol}), installed is {HOST_VERSION} "
            f"(protocol {HOST_PROTOCOL}): let its workers end, then restart both",
            command=f"{place.crewd('drain')}; {place.crewd('stop --all')}; {place.crewd('ensure')}",
            details=told,
        )


def _daemon_file(place: Place) -> DaemonFile | Finding | None:
    path = place.paths.daemon_file
    try:
        return DaemonFile.parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        return warning(
            id="daemon.file",
            message=f"{path} cannot be read, so clients look for the daemon at its usual place: "
            f"{problem}",
            command=f"rm {quoted(path)}; {place.crewd('stop')}; {place.crewd('ensure')}",
        )


def _host_file(path: Path) -> dict[str, str]:
    try:
        loaded: object = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(loaded, dict):
        return {}
    told = cast("dict[str, object]", loaded)
    return {name: str(told[name]) for name in ("pid", "version", "protocol") if name in told}


def _is_stopped(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat[stat.rindex(b")") + 2 :][:1] in (b"T", b"t")


def _unreachable(path: Path) -> str:
    try:
        _connected(path).close()
    except OSError as problem:
        return problem.strerror or str(problem)
    return ""


def _silent_host(path: Path) -> str:
    """Ask the host something that only its controller may: any answer will do."""
    try:
        with closing(_connected(path)) as connection:
            connection.sendall(b'{"id":1,"verb":"ping"}\n')
            heard = connection.recv(_ANSWER_BYTES)
    except TimeoutError:
        return f"nothing comes for {_ANSWER_SECONDS:g} s"
    except OSError as problem:
        return problem.strerror or str(problem)
    return "" if heard else "it hangs up"


def _connected(path: Path) -> sockets.socket:
    connection = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
    try:
        connection.settimeout(_ANSWER_SECONDS)
        connection.connect(os.fspath(path))
    except OSError:
        connection.close()
        raise
    return connection


CHECKS: Final[tuple[Check, ...]] = (daemon, daemon_socket, host)
