"""Hand a live process on: the job that had it ends, and another one has it from there on."""

from __future__ import annotations

from collections.abc import Callable

from crewd.host.connection import Connection
from crewd.host.job import Job
from crewd.host.messages import Message, RefusedError, flag, text
from crewd.host.outputs import Outputs
from crewd.host.owners import Owners
from crewd.host.protocol import valid_job_key
from crewd.host.registry import Registry
from crewd.host.starter import Handover, Starter
from crewd.host.tree import described

_KEEP_CHILDREN = "keep_children"


class Passer:
    """Everything that could fail is done before anything is changed."""

    def __init__(
        self,
        epoch: str,
        registry: Registry,
        starter: Starter,
        *,
        owners: Owners,
        outputs: Outputs,
    ) -> None:
        self._epoch = epoch
        self._registry = registry
        self._starter = starter
        self._owners = owners
        self._outputs = outputs
        self.on_passed: Callable[[Connection, Job, Job], None] = (
            lambda _controller, _job, _successor: None
        )

    def perform(self, connection: Connection, message: Message) -> Message:
        """Do it or raise RefusedError; what is done already is only answered again."""
        source, target = text(message, "from"), text(message, "to")
        kept = flag(message, _KEEP_CHILDREN)
        done = self._registry.passed(source, target)
        if done is not None:
            return done
        if text(message, "epoch") != self._epoch:
            raise RefusedError("epoch", f"this is epoch {self._epoch}", epoch=self._epoch)
        self._check_unknown(target)
        job = self._idle(source)
        self._check_alone(job)
        self._take_output(job)
        if _KEEP_CHILDREN not in message:
            kept = job.keep_children
        successor = self._take_over(job, Handover(target, kept))
        job.worker_exited(0)
        self.on_passed(connection, job, successor)
        return {"pid": successor.pid}

    def _check_unknown(self, key: str) -> None:
        if not valid_job_key(key):
            raise _not_passed("`to` must be run/task/attempt")
        if self._starter.holds(key):
            raise _not_passed(f"{key} waits to be started")
        if key in self._registry.live or key in self._registry.exits:
            raise _not_passed(f"{key} was started already")
        if key in self._registry.lost:
            raise _not_passed(f"{key} was started by an earlier host")

    def _idle(self, key: str) -> Job:
        """Return the job if nothing is under way with it."""
        job = self._registry.live.get(key)
        if job is None:
            raise _not_passed(self._why_not_live(key))
        if job.stop_asked:
            raise _not_passed(f"{key} is being stopped")
        if job.worker_ended:
            raise _not_passed(f"the process of {key} has ended")
        if job.stdin is None or not job.stdin.open:
            raise _not_passed(f"the stdin of {key} is closed")
        if job.stdin.queued:
            raise _not_passed(f"{key} has not taken {job.stdin.queued} bytes of its stdin")
        return job

    def _why_not_live(self, key: str) -> str:
        if self._starter.holds(key):
            return f"{key} is not started yet"
        return f"{key} has ended" if key in self._registry.exits else f"no job {key}"

    def _check_alone(self, job: Job) -> None:
        self._owners.forget_look()
        tree = self._owners.members(job)
        others = [process for process in tree if process.pid != job.pid]
        if others:
            names = ", ".join(f"{found['pid']} ({found['command']})" for found in described(others))
            raise _not_passed(f"{job.key} has other processes: {names}")
        if not tree:
            raise _not_passed(f"the process of {job.key} has ended")

    def _take_output(self, job: Job) -> None:
        """Have all that the process has written so far in the spool of the job that it was for."""
        self._outputs.drain(job)
        if self._outputs.waits_for_disk(job):
            raise _not_passed(f"the output of {job.key} waits for space on the disk")

    def _take_over(self, job: Job, handover: Handover) -> Job:
        try:
            return self._starter.take_over(job, handover)
        except OSError as error:
            raise _not_passed(f"{job.key} cannot be marked anew: {error.strerror}") from error


def _not_passed(why: str) -> RefusedError:
    return RefusedError("not_passed", why)
