"""What the host tells the daemon, as plain frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class HostStatus(StrEnum):
    CONNECTED = "connected"
    STARTING = "starting"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class Survivor:
    """A process that could not be killed."""

    pid: int
    command: str = ""


@dataclass(frozen=True, slots=True)
class JobSeen:
    """A live job; `stdout` and `stderr` count the bytes it has written so far."""

    job: str
    pid: int
    stdout: int
    stderr: int
    stdin_seq: int
    stopping: bool


@dataclass(frozen=True, slots=True)
class ExitSeen:
    """The end of a job. No exit code and no signal: it never started, or could not be killed."""

    job: str
    epoch: str
    exit_code: int | None
    signal: int | None
    stdout: int
    stderr: int
    survivors: tuple[Survivor, ...] = ()
    stopped: bool = False
    never_started: bool = False
    stdin_seq: int = 0
    pid: int = 0


@dataclass(frozen=True, slots=True)
class LostSeen:
    """A job that an earlier host started and whose end nobody saw; it does not run any more."""

    job: str
    epoch: str
    stdout: int
    stderr: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSnapshot:
    """Everything the host knows, at one moment; what it tells afterwards comes on top."""

    epoch: str
    boot_id: str
    pid: int
    version: str
    protocol: int
    jobs: Mapping[str, JobSeen]
    exits: Mapping[str, ExitSeen]
    lost: Mapping[str, LostSeen]
    strays: tuple[Survivor, ...]


@dataclass(frozen=True, slots=True)
class HostUp:
    snapshot: HostSnapshot


@dataclass(frozen=True, slots=True)
class HostDown:
    reason: str


@dataclass(frozen=True, slots=True)
class Started:
    """The job runs, or has run: a repeated start is answered like the first. Pid 0: long ago."""

    job: str
    pid: int


@dataclass(frozen=True, slots=True)
class StartRefused:
    job: str
    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Output:
    job: str
    stdout: int
    stderr: int


@dataclass(frozen=True, slots=True)
class Exit:
    exit: ExitSeen


@dataclass(frozen=True, slots=True)
class Written:
    job: str
    stdin_seq: int


@dataclass(frozen=True, slots=True)
class WriteRefused:
    """`full`: wait for StdinRoom; `gap`, `closed`, `unknown`: look at the rows again."""

    job: str
    kind: str


@dataclass(frozen=True, slots=True)
class StdinRoom:
    job: str


@dataclass(frozen=True, slots=True)
class DiskFull:
    message: str


@dataclass(frozen=True, slots=True)
class DiskOk: ...


News = (
    HostUp
    | HostDown
    | Started
    | StartRefused
    | Output
    | Exit
    | Written
    | WriteRefused
    | StdinRoom
    | DiskFull
    | DiskOk
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartJob:
    job: str
    epoch: str
    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    stdin: bool = False
    keep_children: bool = False
