"""All jobs anybody can still ask for: live, ended, and what earlier hosts left."""

from __future__ import annotations

from crewd.host.job import Job
from crewd.host.journal import Journal
from crewd.host.messages import Message, line
from crewd.host.owners import Owners
from crewd.host.protocol import STDERR, STDOUT, HostPaths, spool_name
from crewd.host.spool import LeftSpools
from crewd.host.tree import read_process


class Registry:
    def __init__(self, paths: HostPaths, journal: Journal, owners: Owners) -> None:
        self._journal = journal
        self._owners = owners
        self._ended: dict[str, Job] = {}
        self._left = LeftSpools(paths.spool)
        self._left.keep_only({spool_name(job) for job in (*journal.earlier_exits, *journal.lost)})
        self.live: dict[str, Job] = {}
        self.exits: dict[str, Message] = dict(journal.earlier_exits)
        self.lost: dict[str, Message] = {
            job: {
                "job": job,
                "epoch": epoch,
                STDOUT: self._left.size(spool_name(job), STDOUT),
                STDERR: self._left.size(spool_name(job), STDERR),
            }
            for job, epoch in journal.lost.items()
        }

    def find(self, key: str) -> Job | None:
        """Return the job if this host ever started it and it is not forgotten."""
        return self.live.get(key) or self._ended.get(key)

    def passed(self, source: str, target: str) -> Message | None:
        """Describe the job if it has its process from this source and is not forgotten."""
        job = self.find(target)
        if job is not None:
            return _pid(job) if job.passed_from == source else None
        report = self.exits.get(target, {})
        return {"pid": 0, "ended": True} if report.get("passed_from") == source else None

    def started(self, job: Job) -> None:
        self.live[job.key] = job
        self._owners.add(job)
        if not job.keep_children:
            self._journal.started(job.key)

    def about_to_start(self, key: str) -> None:
        """Write down a start before it happens, by a write of its own.

        A new host kills what carries the mark of a lost job and spares what a job that has ended
        was told to keep; it can tell them apart only if no start of such a job is missing.
        """
        self._journal.started(key)
        try:
            self._journal.flush()
        except OSError:
            return  # The flush of this turn meets the same disk, and says so.

    def not_started(self, key: str) -> None:
        self._journal.forgotten(key)

    def ended(self, job: Job, report: Message) -> bytes:
        """Keep the report of a job's end; return the line of it that is journaled and told."""
        job.exit = report
        self._ended[job.key] = self.live.pop(job.key)
        return self.reported(job.key, report)

    def reported(self, key: str, report: Message) -> bytes:
        self.exits[key] = report
        raw = line(report)
        self._journal.exited(key, raw)
        return raw

    def forget(self, key: str) -> None:
        """Drop an ended or lost job and all that is kept of it; a live one stays."""
        if key in self.live:
            return
        known = self.exits.pop(key, None) or self.lost.pop(key, None)
        job = self._ended.pop(key, None)
        if job is not None:
            self._owners.forget(job)
            for stream in job.streams:
                stream.spool.unlink()
        elif known is not None:
            self._left.unlink(spool_name(key))
        self._journal.forgotten(key)

    def described(self) -> Message:
        return {
            "jobs": [_described(job) for job in self.live.values()],
            "exits": list(self.exits.values()),
            "lost": list(self.lost.values()),
        }


def _pid(job: Job) -> Message:
    return {"pid": job.pid, "ended": job.exit is not None}


def _described(job: Job) -> Message:
    process = None if job.worker_ended else read_process(job.pid)
    return {
        "job": job.key,
        "pid": job.pid,
        "start_ticks": process.start_ticks if process is not None else None,
        STDOUT: job.stdout.spool.written,
        STDERR: job.stderr.spool.written,
        "stdin_seq": job.stdin.sequence if job.stdin is not None else 0,
        "stopping": job.stop_asked,
        "keep_children": job.keep_children,
    }
