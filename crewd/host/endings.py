"""How jobs end: wait for children, stop what is left of their trees, report once."""

from __future__ import annotations

import os
from collections.abc import Callable

from crewd.host.job import Job
from crewd.host.ladder import Ladder
from crewd.host.loop import Loop
from crewd.host.outputs import Outputs
from crewd.host.owners import Owners
from crewd.host.tree import Process

_LEFT_OVER_GRACE_SECONDS = 2.0


class Endings:
    def __init__(
        self,
        loop: Loop,
        owners: Owners,
        outputs: Outputs,
        on_exit: Callable[[Job, list[Process]], None],
    ) -> None:
        self._loop = loop
        self._owners = owners
        self._outputs = outputs
        self._on_exit = on_exit
        self._ladders: dict[Job, Ladder] = {}
        self._unspooled: dict[Job, list[Process]] = {}
        outputs.on_spooled = self._finish_when_spooled

    def reap(self) -> None:
        """Wait for all children that have died, and act on what that means for their jobs."""
        touched: dict[Job, None] = {}
        while (dead := _dead_child()) is not None:
            pid, code = dead
            job, was_worker = self._owners.reaped(pid)
            if job is not None and job.exit is None:
                touched[job] = None
                if was_worker:
                    job.worker_exited(code)
        if touched:
            self._owners.forget_look()
            self._owners.adopt()
        for job in touched:
            if job in self._ladders:
                self._ladders[job].look()
            elif job.worker_ended and job not in self._unspooled:
                self._worker_ended(job)

    def stop(self, job: Job, grace: float) -> None:
        job.stop_asked = True
        if job in self._ladders:
            self._ladders[job].shorten(grace)
        elif job in self._unspooled:
            self._finish(job, self._unspooled.pop(job))
        else:
            self._start_ladder(job, grace)

    def stopping(self, job: Job) -> bool:
        return job in self._ladders

    def _worker_ended(self, job: Job) -> None:
        if job.stdin is not None:
            job.stdin.close()
        self._outputs.drain(job)
        if job.keep_children or not self._owners.orphans_of(job):
            self._finish(job, [])
        else:
            self._start_ladder(job, _LEFT_OVER_GRACE_SECONDS)

    def _start_ladder(self, job: Job, grace: float) -> None:
        ladder = Ladder(self._loop, self._owners, job, self._tree_gone)
        self._ladders[job] = ladder
        ladder.begin(grace)

    def _tree_gone(self, job: Job, survivors: list[Process]) -> None:
        del self._ladders[job]
        self._outputs.drain(job)
        self._finish(job, survivors)

    def _finish(self, job: Job, survivors: list[Process]) -> None:
        # A stopped job's last words are not worth an answer that waits for a full disk.
        if self._outputs.waits_for_disk(job) and not job.stop_asked:
            self._unspooled[job] = survivors
            return
        if job.stdin is not None:
            job.stdin.close()
        self._outputs.finish(job)
        self._on_exit(job, survivors)

    def _finish_when_spooled(self, job: Job) -> None:
        if job in self._unspooled and not self._outputs.waits_for_disk(job):
            self._finish(job, self._unspooled.pop(job))


def _dead_child() -> tuple[int, int] | None:
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, os.waitstatus_to_exitcode(status)) if pid else None
