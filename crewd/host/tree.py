"""Processes as /proc shows them, and signals that reach only the process that was meant."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from crewd.host.messages import Message

_PR_SET_CHILD_SUBREAPER = 36
_CHILDREN = f"/proc/self/task/{os.getpid()}/children"
_READ_BYTES = 1 << 16
_FULL_ANSWER = (
    4000  # The kernel lists children by the page of 4096 bytes; a shorter answer is the last.
)
_COMMAND_CHARACTERS = 200

Processes = dict[int, "Process"]


class Process(NamedTuple):
    pid: int
    parent: int
    group: int
    session: int
    zombie: bool
    start_ticks: int

    @property
    def identity(self) -> tuple[int, int]:
        return self.pid, self.start_ticks


def become_subreaper() -> None:
    """Make every orphan of our tree our child, so that none can leave it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def read_process(pid: int) -> Process | None:
    stat = _read(f"/proc/{pid}/stat")
    if stat is None:
        return None
    # The name of the program is in parentheses and may itself hold spaces and parentheses.
    fields = stat[stat.rindex(b")") + 2 :].split()
    return Process(
        pid=pid,
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        zombie=fields[0] in b"ZX",
        start_ticks=int(fields[19]),
    )


def is_alive(process: Process) -> bool:
    """Tell whether it is still there: this one, not a later one with its pid."""
    now = read_process(process.pid)
    return now is not None and not now.zombie and now.start_ticks == process.start_ticks


def all_processes() -> Processes:
    found = (read_process(int(entry.name)) for entry in os.scandir("/proc") if entry.name.isdigit())
    return {process.pid: process for process in found if process is not None}


class OwnChildren:
    """Tells our children, those included that died and were not waited for."""

    def __init__(self) -> None:
        try:
            self._descriptor = os.open(_CHILDREN, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:  # A kernel without CONFIG_PROC_CHILDREN.
            self._descriptor = -1

    def look(self) -> set[int]:
        if self._descriptor < 0:
            own = os.getpid()
            return {p.pid for p in all_processes().values() if p.parent == own}
        found = b""
        while part := os.pread(self._descriptor, _READ_BYTES, len(found)):
            found += part
            if len(part) < _FULL_ANSWER:
                break
        return {int(pid) for pid in found.split()}


def with_descendants(processes: Mapping[int, Process], roots: Iterable[int]) -> set[int]:
    """Return those of the roots that exist, and all that descends from any root."""
    children: dict[int, list[int]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process.pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting.extend(children.get(pid, ()))
    return found & processes.keys()


def ancestors(processes: Mapping[int, Process], pid: int) -> set[int]:
    found: set[int] = set()
    process = processes.get(pid)
    while process is not None and process.pid not in found:
        found.add(process.pid)
        process = processes.get(process.parent)
    return found


def job_in_environment(pid: int, variable: bytes) -> str | None:
    """Return what follows `variable=` in the environment the process was born with."""
    for entry in (_read(f"/proc/{pid}/environ") or b"").split(b"\0"):
        if entry.startswith(variable):
            return entry[len(variable) :].decode(errors="replace")
    return None


def send(process: Process, *signals: signal.Signals) -> None:
    """Signal this process and no later one with the same pid."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        now = read_process(process.pid)
        if now is not None and now.start_ticks == process.start_ticks:
            for number in signals:
                signal.pidfd_send_signal(descriptor, number)
    except (ProcessLookupError, PermissionError):
        pass  # Gone, or not ours to signal: the next look at the tree tells which.
    finally:
        os.close(descriptor)


def kill_all(members: Iterable[Process]) -> None:
    """Kill whole groups first: a process that forks for ever cannot outrun that."""
    own_group = os.getpgrp()
    members = list(members)
    for group in {process.group for process in members} - {0, own_group}:
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
    for process in members:
        send(process, signal.SIGKILL)


def described(members: Iterable[Process]) -> list[Message]:
    return [{"pid": process.pid, "command": _command(process.pid)} for process in members]


def _command(pid: int) -> str:
    words = (_read(f"/proc/{pid}/cmdline") or b"").replace(b"\0", b" ").strip()
    name = words or (_read(f"/proc/{pid}/comm") or b"").strip()
    return name.decode(errors="replace")[:_COMMAND_CHARACTERS]


def _read(path: str) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None  # Gone, or another user's.
    try:
        return os.read(descriptor, _READ_BYTES)
    except OSError:
        return None  # A process can go between open and read.
    finally:
        os.close(descriptor)
