"""`crewd host`: be the host. And its end with all that runs under it, where no daemon does that."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import click

from crewd import __version__
from crewd.cli.options import state_dir_option
from crewd.host.protocol import IDLE_EXIT_SECONDS, PROTOCOL, HostPaths, secret
from crewd.instance import holder
from crewd.paths import StatePaths
from crewd.refusal import Exit, Refusal
from crewd_client import locate

_ANSWER_SECONDS = 5.0
_END_SECONDS = 30.0
_SHUTDOWN = 2
_PAUSE_SECONDS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEnd:
    jobs: int
    survivors: tuple[str, ...]


@click.command
@state_dir_option
@click.option(
    "--idle-exit",
    type=click.FloatRange(min=0),
    default=IDLE_EXIT_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="End after so long without a worker and a daemon.",
)
def command(state_dir: str | None, *, idle_exit: float) -> None:
    """Run the host, which owns all workers, in the foreground: for a service manager."""
    paths = StatePaths(locate.state_dir(os.environ, state_dir))
    paths.make()
    # The host is small: nothing of this command stays in its process.
    host = (sys.executable, "-P", "-m", "crewd.host", "--state-dir", str(paths.root))
    os.execv(sys.executable, (*host, "--idle-exit", str(idle_exit)))  # noqa: S606 - ourselves


def stop_host(state_dir: Path) -> HostEnd | None:
    """Stop every job and the host; return when it is gone. None: no host ran."""
    paths = HostPaths(state_dir)
    try:
        end = _shut_down(paths)
    except (FileNotFoundError, ConnectionRefusedError):
        if holder(paths.lock) is None:
            return None
        raise _stays(paths, "does not answer") from None
    except OSError as error:
        raise _stays(paths, "does not answer") from error
    deadline = time.monotonic() + _END_SECONDS
    while holder(paths.lock) is not None:
        if time.monotonic() > deadline:
            raise _stays(paths, "did not end")
        time.sleep(_PAUSE_SECONDS)
    return end


def _shut_down(paths: HostPaths) -> HostEnd:
    jobs = 0
    survivors: list[str] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_ANSWER_SECONDS)
        connection.connect(os.fspath(paths.socket))
        hello = {"id": 1, "verb": "hello", "protocol": PROTOCOL, "version": __version__}
        _send(connection, {**hello, "key": secret(paths.key)})
        _send(connection, {"id": _SHUTDOWN, "verb": "shutdown", "stop_jobs": True})
        for message in _messages(connection):
            if message.get("ok") is False:
                raise _stays(paths, f"refused: {message.get('error')}")
            if message.get("id") == _SHUTDOWN:  # It is at it: workers may take their time to end.
                connection.settimeout(_END_SECONDS)
            if message.get("news") == "exit":
                jobs += 1
                survivors += _named(message)
    return HostEnd(jobs=jobs, survivors=tuple(survivors))


def _send(connection: socket.socket, message: dict[str, object]) -> None:
    connection.sendall(json.dumps(message).encode() + b"\n")


def _messages(connection: socket.socket) -> Iterator[dict[str, object]]:
    with connection.makefile("rb") as lines:
        for line in lines:
            yield cast("dict[str, object]", json.loads(line))


def _named(message: dict[str, object]) -> list[str]:
    found = cast("list[dict[str, object]]", message.get("survivors") or [])
    return [f"pid {one.get('pid')}: {one.get('command')}" for one in found]


def _stays(paths: HostPaths, what: str) -> Refusal:
    pid = _pid(paths)
    if pid is None:
        return Refusal(
            f"the host of {paths.root.parent} {what}",
            hint=f"its log is {paths.log}",
            exit_code=Exit.FAILED,
        )
    return Refusal(
        f"the host of {paths.root.parent} (pid {pid}) {what}",
        hint=f"`kill -9 {pid}` ends it; a new host (`crewd ensure`) then stops what it left; "
        f"its log is {paths.log}",
        exit_code=Exit.FAILED,
    )


def _pid(paths: HostPaths) -> int | None:
    """Return the pid that the host wrote down, if it is still the one that holds the lock."""
    if holder(paths.lock) is None:
        return None
    try:
        return int(json.loads(paths.info.read_bytes())["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
