"""Processes of workers that nobody looks after any more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Final, NamedTuple, cast

from crewd.doctor.database import open_quietly
from crewd.doctor.finding import Check, Finding, Place, info, ok, warning
from crewd.host.marks import Marks, keeps_children
from crewd.host.protocol import ATTEMPT_VARIABLE, HostPaths
from crewd.host.tree import (
    Processes,
    all_processes,
    described,
    job_in_environment,
    read_process,
    with_descendants,
)
from crewd.instance import holder
from crewd.store.queries import SQL

_MOST: Final = 100


class _Marked(NamedTuple):
    pid: int
    job: str
    """`run/task/number`; empty where only the inherited mark tells that it is ours."""
    kept: bool
    """Its task was told to keep its children."""


def processes(place: Place) -> Iterator[Finding]:
    """Find what carries this store's marks and does not descend from a living host."""
    try:
        marker = place.hosts.marker.read_text(encoding="ascii")
    except FileNotFoundError:
        return
    running = all_processes()
    hosted = _hosted(place.hosts, running)
    marked = _marked(running, marker)
    lost = [one for one in marked if one.pid not in hosted]
    for one in lost[:_MOST]:
        yield _orphan(place, one, hosted=bool(hosted))
    if not lost:
        yield ok(
            id="orphans.processes",
            message=f"{len(marked)} processes of workers, all under their host",
            details={"processes": str(len(marked))},
        )


def survivors(place: Place) -> Iterator[Finding]:
    """Look for the processes that a stopped attempt could not be proven rid of."""
    if not place.paths.database.exists():
        return
    with closing(open_quietly(place.paths.database)) as connection:
        rows = connection.execute(SQL["survivors"], (_MOST,)).fetchall()
    for run_id, task_id, number, text in rows:
        for survivor in cast("list[dict[str, object]]", json.loads(text)):
            pid, command = int(str(survivor["pid"])), str(survivor.get("command", ""))
            if command and _command(pid) == command:
                yield warning(
                    id="orphans.survivors",
                    message=f"pid {pid} ({command}) outlived the end of its attempt "
                    f"{run_id}/{task_id}/{number}",
                    command=f"kill -9 {pid}",
                    details={"pid": str(pid), "attempt": f"{run_id}/{task_id}/{number}"},
                )


def _hosted(paths: HostPaths, running: Processes) -> set[int]:
    """Return the living host and all its descendants; orphans of its jobs are among them."""
    if holder(paths.lock) is None:
        return set()
    try:
        pid = int(json.loads(paths.info.read_bytes())["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    return with_descendants(running, [pid])


def _marked(running: Processes, marker: str) -> list[_Marked]:
    marks, variable = Marks(marker), f"{ATTEMPT_VARIABLE}={marker}/".encode()
    found: list[_Marked] = []
    for pid, process in running.items():
        mark = marks.read(pid)
        job = job_in_environment(pid, variable)
        if not process.zombie and (mark is not None or job is not None):
            kept = mark is not None and keeps_children(mark)
            found.append(_Marked(pid, job or "", kept))
    return found


def _orphan(place: Place, one: _Marked, *, hosted: bool) -> Finding:
    whose = f"of {one.job}" if one.job else "of a worker"
    what = f"pid {one.pid} ({_command(one.pid)}) {whose}"
    details = {"pid": str(one.pid), "job": one.job}
    if one.kept:
        return info(
            id="orphans.processes",
            message=f"{what} goes on by itself, as its task was told to let it (keep_children)",
            details=details,
        )
    if hosted:
        return warning(
            id="orphans.processes",
            message=f"{what} is not under the host that runs: it outlived an earlier one",
            command=f"kill -9 {one.pid}",
            details=details,
        )
    return warning(
        id="orphans.processes",
        message=f"{what} has no host any more; the next one stops it",
        command=place.crewd("ensure"),
        details=details,
    )


def _command(pid: int) -> str:
    process = read_process(pid)
    if process is None or process.zombie:
        return ""
    return str(described([process])[0]["command"])


CHECKS: Final[tuple[Check, ...]] = (processes, survivors)
