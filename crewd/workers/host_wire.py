"""Lines of the host's socket, as values. Unknown keys are ignored: the protocol only grows."""

from __future__ import annotations

import json

import msgspec

from crewd.host.protocol import FEATURES, PROTOCOL, VERSION
from crewd.workers.host_news import (
    DiskFull,
    DiskOk,
    Exit,
    ExitSeen,
    HostSnapshot,
    JobSeen,
    LostSeen,
    News,
    Output,
    StartJob,
    StdinRoom,
    Survivor,
)


class Refusal(msgspec.Struct, frozen=True):
    kind: str = "unknown"
    message: str = ""


class Line(msgspec.Struct, frozen=True):
    """One line from the host: a reply when it has an id, else news."""

    id: int | None = None
    ok: bool = True
    error: Refusal = Refusal()
    news: str = ""
    job: str = ""
    message: str = ""
    pid: int = 0
    epoch: str = ""
    stdout: int = 0
    stderr: int = 0
    stdin_seq: int = 0
    exit_code: int | None = None
    signal: int | None = None
    survivors: tuple[Survivor, ...] = ()
    stopped: bool = False
    never_started: bool = False
    passed_to: str = ""
    ended: bool = False
    boot_id: str = ""
    version: str = ""
    protocol: int = 0
    jobs: tuple[JobSeen, ...] = ()
    exits: tuple[ExitSeen, ...] = ()
    lost: tuple[LostSeen, ...] = ()
    strays: tuple[Survivor, ...] = ()


decode = msgspec.json.Decoder(Line).decode

_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def encode(message: dict[str, object]) -> bytes:
    """Return a line. `json` carries file names that are no UTF-8; msgspec refuses them."""
    return _encode(message).encode("ascii")


def hello(key: str, daemon_epoch: str) -> dict[str, object]:
    return {
        "verb": "hello",
        "protocol": PROTOCOL,
        "version": VERSION,
        "features": FEATURES,
        "key": key,
        "daemon_epoch": daemon_epoch,
    }


def pass_of(from_job: str, to_job: str, epoch: str) -> dict[str, object]:
    return {"verb": "pass", "from": from_job, "to": to_job, "epoch": epoch}


def start_of(job: StartJob) -> dict[str, object]:
    return {
        "verb": "start",
        "job": job.job,
        "epoch": job.epoch,
        "argv": job.argv,
        "cwd": job.cwd,
        "env": dict(job.env),
        "stdin": job.stdin,
        "keep_children": job.keep_children,
    }


def news_of(line: Line) -> News | None:
    """Return what the line tells about a job or the disk, if it is anything we know."""
    match line.news:
        case "output":
            return Output(line.job, line.stdout, line.stderr)
        case "exit":
            return Exit(_exit(line))
        case "stdin_room":
            return StdinRoom(line.job)
        case "disk":
            return DiskFull(line.message)
        case "disk_ok":
            return DiskOk()
        case _:
            return None


def snapshot_of(line: Line) -> HostSnapshot:
    return HostSnapshot(
        epoch=line.epoch,
        boot_id=line.boot_id,
        pid=line.pid,
        version=line.version,
        protocol=line.protocol,
        jobs={job.job: job for job in line.jobs},
        exits={seen.job: seen for seen in line.exits},
        lost={lost.job: lost for lost in line.lost},
        strays=line.strays,
    )


def _exit(line: Line) -> ExitSeen:
    return ExitSeen(
        job=line.job,
        epoch=line.epoch,
        exit_code=line.exit_code,
        signal=line.signal,
        stdout=line.stdout,
        stderr=line.stderr,
        survivors=line.survivors,
        stopped=line.stopped,
        never_started=line.never_started,
        stdin_seq=line.stdin_seq,
        pid=line.pid,
        passed_to=line.passed_to,
    )
