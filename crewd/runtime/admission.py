"""What is taken on: nothing while the daemon ends, and nothing that could not be stored."""

from __future__ import annotations

from typing import Final

from crewd.core.errors import CrewdError, Reason
from crewd.store.log import Log

MAX_OPEN_RUNS: Final = 10_000
_TROUBLE: Final = {
    "disk_low": "the disk is nearly full",
    "disk_full": "the disk is full",
    "database_locked": "another program has locked the database",
}


def admit(log: Log, *, draining: bool, open_runs: int) -> None:
    """Raise DRAINING, DISK_LOW or QUEUE_FULL unless a new run can be taken."""
    if draining:
        raise CrewdError(Reason.DRAINING, "the daemon is ending; try again when it is back")
    check_disk(log, "no new run is taken")
    if open_runs >= MAX_OPEN_RUNS:
        raise CrewdError(
            Reason.QUEUE_FULL,
            f"{MAX_OPEN_RUNS} runs are open; wait for some to end, or cancel them",
            limit=str(MAX_OPEN_RUNS),
        )


def check_disk(log: Log, what: str) -> None:
    """Raise DISK_LOW while a write would only wait for space."""
    if not log.can_admit():
        why = disk_trouble(log) or _TROUBLE["disk_low"]
        raise CrewdError(
            Reason.DISK_LOW,
            f"{what}: {why}; free some space and try again",
            free_bytes=str(log.free_bytes()),
            needed_bytes=str(log.reserve),
        )


def disk_trouble(log: Log) -> str:
    """Say why nothing is stored now; empty while it is."""
    return _TROUBLE.get(log.paused, log.paused)
