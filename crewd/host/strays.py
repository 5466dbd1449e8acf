"""What a host that died left behind: killed before the next one answers."""

from __future__ import annotations

import os
import time
from collections.abc import Collection

from crewd.host.marks import Marks, keeps_children
from crewd.host.protocol import ATTEMPT_VARIABLE
from crewd.host.tree import (
    Process,
    Processes,
    all_processes,
    ancestors,
    job_in_environment,
    kill_all,
    with_descendants,
)

_KILLING_SECONDS = 3.0
_PAUSE_SECONDS = 0.02


def kill_strays(marks: Marks, store_marker: str, lost: Collection[str]) -> list[Process]:
    """Kill all that carries this store's marks and return those that could not be killed.

    Spared are children that a job was told to keep and that outlived it; those of a lost job are
    not.
    """
    hunt = _Hunt(marks, store_marker, lost)
    give_up_at = time.monotonic() + _KILLING_SECONDS
    while left := hunt.look():
        if time.monotonic() >= give_up_at:
            break
        kill_all(left)
        time.sleep(_PAUSE_SECONDS)
    return left


class _Hunt:
    def __init__(self, marks: Marks, store_marker: str, lost: Collection[str]) -> None:
        self._marks = marks
        self._variable = f"{ATTEMPT_VARIABLE}={store_marker}/".encode()
        self._lost = {marks.of_job(job, keep_children=True) for job in lost}

    def look(self) -> list[Process]:
        processes = all_processes()
        # A worker that an earlier host left may be what starts the daemon that starts this host.
        own_line = ancestors(processes, os.getpid())
        roots = [pid for pid in processes if pid not in own_line and self._is_stray(pid)]
        found = with_descendants(processes, roots) - own_line
        return [processes[pid] for pid in found if not _gone(processes, pid)]

    def _is_stray(self, pid: int) -> bool:
        mark = self._marks.read(pid)
        if mark is None:
            return job_in_environment(pid, self._variable) is not None
        return not keeps_children(mark) or mark in self._lost


def _gone(processes: Processes, pid: int) -> bool:
    return processes[pid].zombie
