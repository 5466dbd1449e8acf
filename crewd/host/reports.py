"""What is told about jobs. An exit is journaled as the line it is told in."""

from __future__ import annotations

import time

from crewd.host.job import Job
from crewd.host.messages import Message
from crewd.host.protocol import STDERR, STDOUT
from crewd.host.tree import Process, described


def output(job: Job) -> Message:
    out, err = job.stdout.spool.written, job.stderr.spool.written
    return {"news": "output", "job": job.key, STDOUT: out, STDERR: err}


def exited(job: Job, survivors: list[Process], epoch: str) -> Message:
    origin = {} if job.passed_from is None else {"passed_from": job.passed_from}
    return {
        "news": "exit",
        "job": job.key,
        "epoch": epoch,
        "pid": job.pid,
        "exit_code": job.exit_code,
        "signal": job.signal,
        STDOUT: job.stdout.spool.written,
        STDERR: job.stderr.spool.written,
        "stdin_seq": job.stdin.sequence if job.stdin is not None else 0,
        "survivors": described(survivors),
        "stopped": job.stop_asked,
        **origin,
        "time": _now(),
    }


def passed(job: Job, successor: Job, epoch: str) -> Message:
    return {**exited(job, [], epoch), "passed_to": successor.key}


def never_started(key: str, epoch: str) -> Message:
    return {
        "news": "exit",
        "job": key,
        "epoch": epoch,
        "exit_code": None,
        "signal": None,
        STDOUT: 0,
        STDERR: 0,
        "survivors": [],
        "stopped": True,
        "never_started": True,
        "time": _now(),
    }


def _now() -> float:
    return round(time.time(), 3)
