"""What only the daemon knows of its health: `DaemonService.Diagnose`.

What can be seen from outside is looked at by `crewd.doctor`, whose findings these are too.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from typing import Final

from crewd.catalog import cache_use
from crewd.core.words import AskStatus, AttemptStatus, RunStatus
from crewd.doctor.finding import Finding, Place, Severity, error, info, ok, quoted, warning
from crewd.rpc.ports import RuntimeInfo, Wiring
from crewd.rpc.wire import cut
from crewd.store import AskFilter, Page, RunFilter
from crewd.v1 import diagnosis_pb2 as pb
from crewd.workers.host_link import HostGoneError

SHOWN: Final = 20
"""How many of a kind are named; of the others only the number is told."""
_TEXT_BYTES: Final = 200
_HOST_SECONDS: Final = 2.0
_WORST_FIRST: Final = tuple(Severity)
_SEVERITIES: Final = {s: pb.FindingSeverity.Value(f"FINDING_SEVERITY_{s.name}") for s in Severity}


async def diagnose(wiring: Wiring) -> list[Finding]:
    """Return what is so, the worst first."""
    runtime = wiring.supervisor.info()
    place = Place(env=os.environ, state_dir=wiring.identity.state_dir)
    found = [*_daemon(place, wiring.status(), runtime), *_host(place, runtime)]
    found += [finding async for finding in _work_of_the_host(wiring)]
    found += [finding async for finding in _waiting(place, wiring)]
    found.append(_catalog())
    return sorted(found, key=lambda finding: _WORST_FIRST.index(finding.severity))


def encode(finding: Finding) -> pb.Finding:
    return pb.Finding(
        id=finding.id,
        severity=_SEVERITIES[finding.severity],
        message=finding.message,
        command=finding.command,
        details=finding.details,
    )


def _daemon(place: Place, status: str, runtime: RuntimeInfo) -> Iterator[Finding]:
    texts = {
        "recovering": "the daemon is finding out what became of the work before it",
        "draining": "the daemon is about to end and starts nothing new",
    }
    if status in texts:
        yield info(id="daemon.status", message=texts[status], command=place.crewd("status"))
    else:
        yield ok(id="daemon.status", message=f"the daemon is {status}")
    if runtime.paused:
        yield error(
            id="store.paused",
            message=f"no new run is taken: {runtime.paused}; free some space",
            command=f"df -h {quoted(place.state_dir)}",
        )
    else:
        yield ok(id="store.paused", message="what happens is stored")


def _catalog() -> Finding:
    use = cache_use()
    read = use.hits + use.misses
    return ok(
        id="catalog.cache",
        message=f"of {read} times a catalog file was read, {use.hits} found it parsed already",
        details={"hits": str(use.hits), "misses": str(use.misses), "files": str(use.files)},
    )


def _host(place: Place, runtime: RuntimeInfo) -> Iterator[Finding]:
    details = {"pid": str(runtime.host_pid), "workers": str(runtime.running_workers)}
    if runtime.host_status == "ready":
        yield ok(
            id="host.status",
            message=f"the host is connected, {runtime.running_workers} workers run",
            details=details,
        )
    elif runtime.host_status == "unreachable":
        pid = runtime.host_pid
        restart = f"{place.crewd('stop')}; {place.crewd('ensure')}"
        yield error(
            id="host.status",
            message=f"no worker can be started: {runtime.host_message}",
            command=f"kill -9 {pid}" if pid else restart,
            details=details,
        )
    else:
        yield info(
            id="host.status",
            message=f"the host is being started or connected to: {runtime.host_message}",
            details=details,
        )


async def _work_of_the_host(wiring: Wiring) -> AsyncIterator[Finding]:
    try:
        async with asyncio.timeout(_HOST_SECONDS):
            snapshot = await wiring.host.list()
    except (HostGoneError, TimeoutError):
        return
    for stray in snapshot.strays:
        yield warning(
            id="host.strays",
            message=f"pid {stray.pid} ({stray.command}) is a child of the host that no task is "
            "known to have started, or one that could not be killed",
            command=f"kill -9 {stray.pid}",
            details={"pid": str(stray.pid), "command": stray.command},
        )
    unwanted = [job for job in snapshot.jobs.values() if not await _is_wanted(wiring, job.job)]
    for job in unwanted:
        doing = "is being stopped" if job.stopping else "was not told to stop"
        yield warning(
            id="host.orphans",
            message=f"job {job.job}, pid {job.pid}, runs although its attempt has ended; it "
            f"{doing}",
            command="" if job.stopping else f"kill -9 {job.pid}",
            details={"job": job.job, "pid": str(job.pid)},
        )
    if not unwanted:
        yield ok(id="host.orphans", message=f"all {len(snapshot.jobs)} jobs are wanted")


async def _is_wanted(wiring: Wiring, job: str) -> bool:
    run_id, task_id, number = job.split("/")
    attempt = await wiring.reads.get_attempt(run_id, task_id, int(number))
    return attempt is not None and attempt.status is not AttemptStatus.ENDED


async def _waiting(place: Place, wiring: Wiring) -> AsyncIterator[Finding]:
    """Tell what only a person can move on."""
    page = Page(limit=SHOWN)
    runs = await wiring.reads.list_runs(RunFilter(statuses=[RunStatus.BLOCKED]), page)
    for run in runs.rows:
        yield info(
            id="runs.blocked",
            message=f"{run.id} is blocked: {cut(run.status_message or run.title, _TEXT_BYTES)}",
            command=place.crew(f"show {run.id}"),
            details={"run_id": run.id, "reason": run.status_reason},
        )
    if runs.next is not None:
        more = place.crew("ls --status blocked")
        yield info(id="runs.blocked", message="more runs are blocked", command=more)
    asks = await wiring.reads.list_asks(AskFilter(statuses=[AskStatus.OPEN]), page)
    for ask in asks.rows:
        text = cut(ask.title or ask.question, _TEXT_BYTES)
        yield info(
            id="asks.open",
            message=f"{ask.id} of {ask.run_id} waits for an answer: {text}",
            command=place.crew(f"answer {ask.id}"),
            details={"ask_id": ask.id, "run_id": ask.run_id, "task_id": ask.task_id},
        )
    if asks.next is not None:
        yield info(id="asks.open", message="more questions wait", command=place.crew("asks"))
