"""What a run can be told: by people, by workers, by the host, by the clock."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from crewd.core.model import Actor, Answer, Artifact, Survivor
from crewd.core.reports import Report, Verdict
from crewd.core.spec import RunSpec
from crewd.core.values import record, value
from crewd.core.words import OutboxKind


class Resolution(StrEnum):
    ACCEPT = "accept"
    FAIL = "fail"
    SKIP = "skip"


@record
class Create:
    """Opens the run. The spec is validated and resolved; see `crewd.core.graph.check`."""

    run_id: str
    spec: RunSpec
    actor: Actor
    request_id: str = ""
    warnings: tuple[str, ...] = ()
    """What its creator should know of the files it was made from."""


@record
class Cancel:
    reason: str
    actor: Actor
    force: bool = False


@record
class CancelTasks:
    task_ids: tuple[str, ...]
    reason: str
    actor: Actor


@record
class Resume:
    actor: Actor
    note: str = ""


@record
class Retry:
    """Puts tasks back in the queue; no ids means everything that is not completed."""

    actor: Actor
    task_ids: tuple[str, ...] = ()


@record
class Resolve:
    task_id: str
    resolution: Resolution
    note: str
    actor: Actor


@record
class Steer:
    task_id: str
    steer_id: str
    text: str
    actor: Actor


@record
class AnswerAsk:
    ask_id: str
    answer: Answer
    actor: Actor
    decline: bool = False


@record
class Delete:
    actor: Actor
    freed_bytes: int = 0
    """What its transcripts took on disk."""


@record
class WorkerStarted:
    task_id: str
    attempt: int
    pid: int
    argv: tuple[str, ...] = ()
    """What was started, as far as people may see it; empty when that is not known any more."""


class Refusal(StrEnum):
    """Why the host could not start a worker."""

    CWD_MISSING = "cwd_missing"
    EXECUTABLE_MISSING = "executable_missing"
    NOT_EXECUTABLE = "not_executable"
    ENVIRONMENT_MISSING = "environment_missing"
    NOT_PASSED = "not_passed"
    """The process of another attempt could not be handed on to it."""
    TRANSIENT = "transient"
    SPAWN = "spawn"


@record
class WorkerRefused:
    task_id: str
    attempt: int
    kind: Refusal
    message: str


@record
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


@record
class WorkerExited:
    """The process tree has ended and all its output was read before this."""

    task_id: str
    attempt: int
    exit_code: int | None
    signal: int | None
    survivors: tuple[Survivor, ...] = ()
    stopped: bool = False
    never_started: bool = False
    passed: bool = False
    """Its process goes on as that of another attempt."""
    stdin_seq: int = 0
    """The last message the host had taken for it."""
    pid: int = 0
    """0 when it never started, or the host does not know any more."""
    verdict: Verdict


@record
class WorkerCalled:
    """The worker itself called, by WorkerService: one report, without output."""

    task_id: str
    attempt: int
    report: Report
    actor: Actor


@record
class AskTaken:
    """The worker has been given the outcome of the question it waited for."""

    ask_id: str
    actor: Actor


@record
class TextKept:
    """What a `KeepText` asked for is durable."""

    artifact: Artifact


@record
class TextWaits:
    """What a `KeepText` asked for cannot be kept now; it is tried again and again."""

    task_id: str
    attempt: int
    message: str


@record
class OutboxAccepted:
    """The host has every message up to `seq`."""

    task_id: str
    attempt: int
    seq: int


@record
class OutboxRoom:
    """A worker that was too slow to read has room again."""

    task_id: str
    attempt: int


@record
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
    artifacts: str = ""
    """The folder of this run's artifacts, as workers may read it."""


@value
class LiveJob:
    pid: int
    stdin_seq: int
    stopping: bool


@value
class HostGone:
    """The host does not answer: nothing new starts until `HostReady`."""


@value
class Due:
    """Some deadline has passed."""


@value
class Capacity:
    """This many more workers may start now."""

    slots: int


@value
class GoOn:
    """The next slice of a wide change."""


@value
class Break:
    """The daemon met a bug in this run twice: it stops, and names the incident."""

    incident_id: str


Command = (
    Create
    | Cancel
    | CancelTasks
    | Resume
    | Retry
    | Resolve
    | Steer
    | AnswerAsk
    | Delete
    | WorkerCalled
    | AskTaken
)
Stimulus = (
    Command
    | WorkerStarted
    | WorkerRefused
    | WorkerReported
    | WorkerExited
    | TextKept
    | TextWaits
    | OutboxAccepted
    | OutboxRoom
    | HostReady
    | HostGone
    | Due
    | Capacity
    | GoOn
    | Break
)
