"""What a run can be told: by people, by workers, by the host, by the clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from crewd.core.model import Actor, Answer, OutboxKind, Survivor
from crewd.core.reports import Report, Verdict
from crewd.core.spec import RunSpec


class Resolution(StrEnum):
    ACCEPT = "accept"
    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Opens the run. The spec is validated and resolved; see `crewd.core.graph.check`."""

    run_id: str
    spec: RunSpec
    actor: Actor
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    reason: str
    actor: Actor
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelTasks:
    task_ids: tuple[str, ...]
    reason: str
    actor: Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    actor: Actor
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Puts tasks back in the queue; no ids means everything that is not completed."""

    actor: Actor
    task_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolve:
    task_id: str
    resolution: Resolution
    note: str
    actor: Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class Steer:
    task_id: str
    steer_id: str
    text: str
    actor: Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerAsk:
    ask_id: str
    answer: Answer
    actor: Actor
    decline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    actor: Actor
    freed_bytes: int = 0
    """What its transcripts took on disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStarted:
    task_id: str
    attempt: int
    pid: int


class Refusal(StrEnum):
    """Why the host could not start a worker."""

    CWD_MISSING = "cwd_missing"
    EXECUTABLE_MISSING = "executable_missing"
    NOT_EXECUTABLE = "not_executable"
    ENVIRONMENT_MISSING = "environment_missing"
    TRANSIENT = "transient"
    SPAWN = "spawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRefused:
    task_id: str
    attempt: int
    kind: Refusal
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReported:
    """Output up to the offsets was read, written to the transcript and folded."""

    task_id: str
    attempt: int
    stdout_offset: int
    stderr_offset: int
    stdout_bytes: int
    stderr_bytes: int
    adapter_state: str
    reports: tuple[Report, ...] = ()
    writes: tuple[tuple[OutboxKind, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerExited:
    """The process tree has ended and all its output was read before this."""

    task_id: str
    attempt: int
    exit_code: int | None
    signal: int | None
    survivors: tuple[Survivor, ...] = ()
    stopped: bool = False
    never_started: bool = False
    stdin_seq: int = 0
    """The last message the host had taken for it."""
    pid: int = 0
    """0 when it never started, or the host does not know any more."""
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxAccepted:
    """The host has every message up to `seq`."""

    task_id: str
    attempt: int
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRoom:
    """A worker that was too slow to read has room again."""

    task_id: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReady:
    """The host answered `hello`: what it runs now, for this run only. Keys are `task/number`.

    Exits are not listed: each follows as `WorkerExited` once its output is read. `exiting` names
    them so that they are not taken for lost.
    """

    epoch: str
    host: str
    live: Mapping[str, LiveJob]
    exiting: frozenset[str]
    recovery: bool
    """True when the daemon has just started."""


@dataclass(frozen=True, slots=True)
class LiveJob:
    pid: int
    stdin_seq: int
    stopping: bool


@dataclass(frozen=True, slots=True)
class HostGone:
    """The host does not answer: nothing new starts until `HostReady`."""


@dataclass(frozen=True, slots=True)
class Due:
    """Some deadline has passed."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """This many more workers may start now."""

    slots: int


@dataclass(frozen=True, slots=True)
class GoOn:
    """The next slice of a wide change."""


@dataclass(frozen=True, slots=True)
class Break:
    """The daemon met a bug in this run twice: it stops, and names the incident."""

    incident_id: str


Command = Create | Cancel | CancelTasks | Resume | Retry | Resolve | Steer | AnswerAsk | Delete
Stimulus = (
    Command
    | WorkerStarted
    | WorkerRefused
    | WorkerReported
    | WorkerExited
    | OutboxAccepted
    | OutboxRoom
    | HostReady
    | HostGone
    | Due
    | Capacity
    | GoOn
    | Break
)
