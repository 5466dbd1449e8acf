"""What the host tells the daemon, as plain frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from crewd.core.values import record, value


class HostStatus(StrEnum):
    CONNECTED = "connected"
    STARTING = "starting"
    UNREACHABLE = "unreachable"


@value
class Survivor:
    """A process that could not be killed."""

    pid: int
    command: str = ""


@value
class JobSeen:
    """A live job; `stdout` and `stderr` count the bytes it has written so far."""

    job: str
    pid: int
    stdout: int
    stderr: int
    stdin_seq: int
    stopping: bool


@value
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
    passed_to: str = ""
    """The job that has its process now: this one ended without the process ending."""


@value
class LostSeen:
    """A job that an earlier host started and whose end nobody saw; it does not run any more."""

    job: str
    epoch: str
    stdout: int
    stderr: int


@record
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


@value
class HostUp:
    snapshot: HostSnapshot


@value
class HostDown:
    reason: str


@value
class Started:
    """The job runs, or has run: a repeated start is answered like the first. Pid 0: long ago."""

    job: str
    pid: int


@value
class StartRefused:
    """`not_passed`: the job did not get the process of another one, and can be started."""

    job: str
    kind: str
    message: str


@value
class Output:
    job: str
    stdout: int
    stderr: int


@value
class Exit:
    exit: ExitSeen


@value
class Written:
    job: str
    stdin_seq: int


@value
class WriteRefused:
    """`full`: wait for StdinRoom; `gap`, `closed`, `unknown`: look at the rows again."""

    job: str
    kind: str


@value
class StdinRoom:
    job: str


@value
class DiskFull:
    message: str


@value
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


@record
class StartJob:
    job: str
    epoch: str
    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    stdin: bool = False
    keep_children: bool = False
