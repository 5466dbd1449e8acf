"""A client that submits a run, receives every event of it, and takes the time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crewd_client import watch_run
from crewd_client.v1.run_pb2 import RUN_STATUS_COMPLETED
from crewd_client.v1.spec_pb2 import RunLimits, TaskSpec
from tests.bench.bare import TRUE
from tests.bench.usage import commits, cpu_ms, files_in, folders_touched
from tests.support.desk import Desk

AT_ONCE = 16
_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Processes:
    """Whose CPU time is taken, and whose commits and files are counted."""

    daemon: int
    host: int
    state_dir: Path

    @classmethod
    async def of(cls, desk: Desk) -> Processes:
        daemon = desk.client.location.daemon
        assert daemon is not None
        return cls(daemon.pid, (await desk.server()).host.pid, Path(daemon.state_dir))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a run took. `wall` is from CreateRun to the receipt of its last event; in ms."""

    tasks: int
    events: int
    wall: float
    daemon_cpu: float
    host_cpu: float
    commits: int
    files: int
    folders: int

    @property
    def wall_per_task(self) -> float:
        return self.wall / self.tasks

    @property
    def cpu_per_task(self) -> float:
        return (self.daemon_cpu + self.host_cpu) / self.tasks


async def spend(desk: Desk, processes: Processes, tasks: Sequence[TaskSpec]) -> Spent:
    """Have a run carried out, and tell what it took. It must complete without a hole."""
    database = processes.state_dir / "crewd.db"
    request = desk.request(*tasks, limits=RunLimits(max_concurrent_workers=AT_ONCE))
    files, since = files_in(processes.state_dir), time.time_ns()
    daemon, host = cpu_ms(processes.daemon), cpu_ms(processes.host)
    committed, start, events = commits(database), time.perf_counter(), 0
    status = 0
    async with asyncio.timeout(_SECONDS):
        run_id = (await desk.client.runs.CreateRun(request)).run.id
        async for event in watch_run(desk.client, run_id):
            events += 1
            status = event.run_status or status
    wall = 1000 * (time.perf_counter() - start)
    assert status == RUN_STATUS_COMPLETED, f"{run_id} has ended with status {status}"
    return Spent(
        tasks=len(tasks),
        events=events,
        wall=wall,
        daemon_cpu=cpu_ms(processes.daemon) - daemon,
        host_cpu=cpu_ms(processes.host) - host,
        commits=commits(database) - committed,
        files=len(files_in(processes.state_dir) - files),
        folders=len(folders_touched(processes.state_dir, since)),
    )


def independent(count: int) -> list[TaskSpec]:
    return [TaskSpec(id=f"t{n}", command=[TRUE]) for n in range(count)]


def chain(count: int) -> list[TaskSpec]:
    """Give tasks each of which waits for the one before."""
    return [
        TaskSpec(id=f"t{n}", command=[TRUE], depends_on=[f"t{n - 1}"] if n else [])
        for n in range(count)
    ]


def layered(count: int) -> list[TaskSpec]:
    """Give as many layers as each has tasks; a task waits for three of the layer before."""
    width = max(3, round(count**0.5))
    tasks: list[TaskSpec] = []
    for n in range(count):
        above = n - n % width - width
        needs = {above + (n + step) % width for step in range(3)} if above >= 0 else set[int]()
        depends_on = [f"t{need}" for need in sorted(needs)]
        tasks.append(TaskSpec(id=f"t{n}", command=[TRUE], depends_on=depends_on))
    return tasks
