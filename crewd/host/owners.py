"""Which process belongs to which job."""

from __future__ import annotations

import os
import signal

from crewd.host.job import Job
from crewd.host.marks import Marks, keeps_children
from crewd.host.protocol import ATTEMPT_VARIABLE
from crewd.host.tree import (
    OwnChildren,
    Process,
    Processes,
    all_processes,
    job_in_environment,
    read_process,
    send,
    with_descendants,
)


class Owners:
    """Every process of a job is our child or descends from one, since orphans come to us.

    So a job has left something behind if and only if we have a child that we did not start
    ourselves.
    """

    def __init__(self, marks: Marks, store_marker: str) -> None:
        self.marks = marks
        self.store_marker = store_marker
        self._variable = f"{ATTEMPT_VARIABLE}={store_marker}/".encode()
        self._by_birth_key: dict[str, Job] = {}
        self._by_mark: dict[int, Job] = {}
        self._orphans: dict[int, Job | None] = {}  # Our children that we did not start.
        self._seen: Processes | None = None
        self._children = OwnChildren()
        self.workers: dict[int, Job] = {}

    def new_mark(self, job: str, *, keep_children: bool) -> int:
        """Return the job's mark; should two jobs hash alike, a free one."""
        mark = self.marks.of_job(job, keep_children=keep_children)
        while mark in self._by_mark:
            mark ^= self.marks.of_job(f"{job}+{mark}", keep_children=False) & 0xFFFFFFFF
        return mark

    def attempt(self, job: str) -> str:
        """Return what the job's processes carry in their environment."""
        return f"{self.store_marker}/{job}"

    def add(self, job: Job) -> None:
        """Take the job in; what was of the job it has its process from is its own now."""
        self._by_birth_key[job.birth_key] = job
        for mark in filter(None, job.marks):
            self._by_mark[mark] = job
        self.workers[job.pid] = job

    def forget(self, job: Job) -> None:
        if self._by_birth_key.get(job.birth_key) is job:
            del self._by_birth_key[job.birth_key]
        for mark in job.marks:
            if self._by_mark.get(mark) is job:
                del self._by_mark[mark]

    def forget_look(self) -> None:
        """Look anew at the processes the next time they are asked for."""
        self._seen = None

    def reaped(self, pid: int) -> tuple[Job | None, bool]:
        """Take a dead child off; tell whose it was, and whether it was the worker itself."""
        job = self.workers.pop(pid, None)
        if job is not None:
            return job, True
        return self._orphans.pop(pid, None), False

    def adopt(self) -> None:
        """Find the owners of orphans that have come to us since the last time."""
        children = self._children.look()
        if len(children) == len(self.workers) + len(self._orphans):
            return
        for pid in children - self.workers.keys() - self._orphans.keys():
            self._orphans[pid] = self._owner(pid)

    def orphans_of(self, job: Job) -> bool:
        return any(owner is job for owner in self._orphans.values())

    def is_gone(self, job: Job) -> bool:
        """Tell whether nothing of the job's tree lives; our children are the proof."""
        if not job.worker_ended or self.members(job):
            return False
        self.adopt()
        return not self.orphans_of(job)

    def members(self, job: Job) -> list[Process]:
        """Return all living processes of this job's tree, from one full look at the machine."""
        if self._seen is None:
            self.adopt()
            self._seen = all_processes()
        roots = {pid for pid, owner in self._orphans.items() if owner is job}
        roots.update(pid for pid in self._seen if self.marks.read(pid) in job.marks)
        if not job.worker_ended:
            roots.add(job.pid)
        roots.discard(os.getpid())
        found = [self._seen[pid] for pid in with_descendants(self._seen, roots)]
        return [process for process in found if not process.zombie]

    def strays(self) -> list[Process]:
        """Return our children that no mark, variable or session gives to a job."""
        found = [read_process(pid) for pid, owner in self._orphans.items() if owner is None]
        return [process for process in found if process is not None]

    def _owner(self, pid: int) -> Job | None:
        mark = self.marks.read(pid)
        if mark is not None:
            owner = self._by_mark.get(mark)
            if (owner is None or owner.exit is not None) and not keeps_children(mark):
                _kill(pid)  # Its job is over and was to leave nothing.
            return owner
        key = job_in_environment(pid, self._variable)
        if key is not None and key in self._by_birth_key:
            return self._by_birth_key[key]
        process = read_process(pid)
        if process is None:
            return None
        return next((j for j in self._by_birth_key.values() if j.pid == process.session), None)


def _kill(pid: int) -> None:
    process = read_process(pid)
    if process is not None:
        send(process, signal.SIGKILL)
