"""What the system lets the daemon, its host and their workers do."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from crewd.doctor.finding import Check, Finding, Place, info, ok, warning
from crewd.instance import holder
from crewd.systemd.units import find_installed_for
from crewd.systemd.user_manager import lingers, user_name

_FILES_OF_A_WORKER: Final = 8
"""Pipes and spools that the host holds open for one worker."""
_FILES_BESIDE: Final = 128
_LEAST_WORKERS: Final = 16
_LIMIT: Final = "Max open files"


def open_files(place: Place) -> Iterator[Finding]:
    """Look at the daemon that runs, else at who asks, from whom the next one inherits."""
    found = holder(place.paths.lock)
    pid = found.pid if found is not None else 0
    soft = _limit_of(pid) if pid else None
    whose = f"the daemon, pid {pid}," if soft is not None else "this shell"
    if soft is None:
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    yield judge_open_files(place, whose, soft)


def judge_open_files(place: Place, whose: str, soft: int) -> Finding:
    """Compare a limit with what a full machine of workers needs; -1 is no limit."""
    workers = max(_LEAST_WORKERS, 2 * (os.cpu_count() or 1))
    need = _FILES_BESIDE + workers * _FILES_OF_A_WORKER
    details = {"limit": str(soft), "needed": str(need)}
    if 0 <= soft < need:
        return warning(
            id="limits.open_files",
            message=f"{whose} may open {soft} files; {workers} workers need about {need}",
            command=f"ulimit -n {max(4096, need)}; {place.crewd('stop --all')}; "
            f"{place.crewd('ensure')}",
            details=details,
        )
    count = "any number of" if soft < 0 else f"{soft}"
    return ok(id="limits.open_files", message=f"{whose} may open {count} files", details=details)


def marks(_: Place) -> Iterator[Finding]:
    """Tell whether a worker's processes can be known whatever they do with their environment."""
    hard = resource.getrlimit(resource.RLIMIT_RTTIME)[1]
    if hard == resource.RLIM_INFINITY:
        yield ok(id="limits.marks", message="workers' processes can be marked")
        return
    yield warning(
        id="limits.marks",
        message="the hard limit on real-time CPU time is set, so workers' processes cannot be "
        "marked by it: one that clears its environment and leaves its session while no host runs "
        "is not found again",
        command="ulimit -H -R",
        details={"hard_limit": str(hard)},
    )


def logout(place: Place) -> Iterator[Finding]:
    """Tell what the end of the last session does to the daemon, where systemd decides it."""
    user = user_name(place.env)
    if not (place.system / "run/systemd/system").is_dir() or not user:
        return
    if lingers(place.system, user):
        yield ok(id="logout.linger", message="the daemon goes on when you log out (linger is on)")
    elif find_installed_for(place.state_dir, place.env) is not None:
        yield warning(
            id="logout.linger",
            message="the daemon is a user service, so it ends at your last logout and its workers "
            "with it",
            command="loginctl enable-linger",
        )
    else:
        yield info(
            id="logout.linger",
            message="a daemon that is a user service ends at your last logout, and any other "
            "where the system ends users' processes then (KillUserProcesses)",
            command="loginctl enable-linger",
        )


def _limit_of(pid: int) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    except OSError:
        return None
    soft = next((ln.removeprefix(_LIMIT).split()[0] for ln in lines if ln.startswith(_LIMIT)), "")
    return -1 if soft == "unlimited" else int(soft) if soft.isdigit() else None


CHECKS: Final[tuple[Check, ...]] = (open_files, marks, logout)
