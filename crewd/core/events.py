"""What happened: the facts of a run's log.

Each becomes one `crewd.v1.Event`; its class name in snake case is the `kind`. They are applied to
the rows by `crewd.core.apply`, nowhere else.
"""

from __future__ import annotations

from typing import Final

from crewd.core.model import (
    NO_USAGE,
    Actor,
    Answer,
    Artifact,
    Ask,
    Failure,
    Progress,
    Result,
    Run,
    Survivor,
    Task,
    Usage,
)
from crewd.core.units import Instant
from crewd.core.values import record, value
from crewd.core.words import (
    AskChannel,
    AskStatus,
    Cause,
    Delivery,
    Outcome,
    TaskStatus,
)
from crewd.core.words import RunStatus as _RunStatus

CANCELLING_CAUSES: Final = frozenset({"cancelled", "fail_fast", "limit", "incident"})


@record
class RunCreated:
    run: Run


@value
class TasksAdded:
    tasks: tuple[Task, ...]
    cause: str = "spec"


@value
class RunStarted: ...


@record
class RunBlocked:
    reason: str
    detail: str
    task_ids: tuple[str, ...] = ()


@record
class RunCancelRequested:
    reason: str
    force: bool = False


@record
class RunResumed:
    """The run is open again: after a resume, a retry, a resolved task or an answer."""

    cause: str
    requeued_task_ids: tuple[str, ...] = ()
    """The first of them; the others follow, each with its own `TaskRequeued`."""
    note: str = ""
    requeueing: str = ""
    """What goes back to the queue in the slices that follow; see `Run.requeueing`."""


@record
class RunFinished:
    status: _RunStatus
    reason: str = ""
    message: str = ""
    result: Result | None = None
    error: Failure | None = None
    failed_task_ids: tuple[str, ...] = ()
    survivors: tuple[Survivor, ...] = ()


@record
class RunRecovered:
    adopted: tuple[str, ...] = ()
    """Attempts (`task/number`) that went on while no daemon was there."""
    lost: tuple[str, ...] = ()


@value
class RunDeleted:
    freed_bytes: int = 0


@record
class TaskRetryScheduled:
    task_id: str
    next_attempt: int
    not_before: Instant
    cause: Cause | None = None
    spends: bool = True
    """False when the attempt that ended does not count against `max_attempts`."""


@record
class TaskRequeued:
    task_id: str
    cause: str
    note: str = ""


@record
class TaskFinished:
    """The task left the queue or its attempts for `status`: terminal, or needs_attention."""

    task_id: str
    status: TaskStatus
    reason: str = ""
    message: str = ""
    result: Result | None = None
    error: Failure | None = None
    note: str = ""


@record
class TaskHeld:
    """The task could run but may not for longer than a second."""

    task_id: str
    reason: str
    until: Instant | None = None


@record
class AttemptStarting:
    """The intent to start a worker, committed before the host is told."""

    task_id: str
    attempt: int
    adapter: str
    epoch: str
    argv: tuple[str, ...] = ()
    model: str = ""
    deadline: Instant | None = None


@record
class AttemptStarted:
    task_id: str
    attempt: int
    pid: int = 0
    host: str = ""
    argv: tuple[str, ...] = ()
    """What was started; empty: what was intended."""
    speak_until: Instant | None = None
    """When an agent must have said something; None for other workers."""


@record
class AttemptStopping:
    """A stop is intended; the host is told after the commit and again at each recovery."""

    task_id: str
    attempt: int
    cause: str
    """`cancelled`, `fail_fast`, `limit`, `timeout`, `ask_timeout` or `lingering`."""
    force_until: Instant | None = None

    @property
    def cancels(self) -> bool:
        """Say whether the task ends with it, instead of being judged or tried again."""
        return self.cause in CANCELLING_CAUSES


@record
class AttemptEnded:
    task_id: str
    attempt: int
    outcome: Outcome
    cause: Cause | None = None
    message: str = ""
    retryable: bool = False
    exit_code: int | None = None
    signal: int | None = None
    usage: Usage = NO_USAGE
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    proof: str = ""
    """What shows that nothing of it runs: `exit`, `stopped`, `never_started`, `passed_on`,
    `host_lost`, `inline`; empty when nothing does, and then `survivors` are named."""
    survivors: tuple[Survivor, ...] = ()
    result: Result | None = None


@record
class TaskProgressed:
    task_id: str
    attempt: int
    progress: Progress


@record
class MessagePosted:
    task_id: str
    attempt: int
    role: str
    text: str
    truncated: bool = False


@record
class ToolStarted:
    task_id: str
    attempt: int
    tool_id: str
    name: str
    title: str = ""


@record
class ToolEnded:
    task_id: str
    attempt: int
    tool_id: str
    is_error: bool = False
    detail: str = ""


@record
class UsageReported:
    task_id: str
    attempt: int
    delta: Usage
    model: str = ""


@record
class ProviderErrorReported:
    task_id: str
    attempt: int
    cause: Cause
    message: str
    retry_time: Instant | None = None


@value
class AskOpened:
    ask: Ask

    @property
    def task_id(self) -> str:
        return self.ask.task_id

    @property
    def attempt(self) -> int:
        return self.ask.attempt


@record
class AskAttached:
    """The task's next attempt asked the same question; the ask is its own now."""

    ask_id: str
    task_id: str
    attempt: int
    worker_ref: str
    channel: AskChannel = AskChannel.STDIN


@record
class AskSettled:
    ask_id: str
    task_id: str
    attempt: int
    outcome: AskStatus
    answer: Answer | None = None
    """Redacted, as everyone may see it."""
    answer_masked: bool = False
    raw_text: str = ""
    """See `Ask.raw_text`; never published."""
    by: Actor | None = None
    delivery: Delivery = Delivery.NONE


@record
class AskDelivered:
    ask_id: str
    task_id: str
    attempt: int
    delivery: Delivery


@record
class SteerUpdated:
    task_id: str
    attempt: int
    steer_id: str
    status: str
    """`queued`, `delivered`, `seen`, `expired` or `undeliverable`."""
    text: str = ""


@value
class ArtifactRecorded:
    artifact: Artifact

    @property
    def task_id(self) -> str:
        return self.artifact.task_id

    @property
    def attempt(self) -> int:
        return self.artifact.attempt


@record
class LimitReached:
    reason: str
    used: int
    maximum: int
    action: str
    """`warned` or `stopped`."""


@record
class WarningRaised:
    code: str
    message: str
    task_id: str = ""
    attempt: int = 0


Event = (
    RunCreated
    | TasksAdded
    | RunStarted
    | RunBlocked
    | RunCancelRequested
    | RunResumed
    | RunFinished
    | RunRecovered
    | RunDeleted
    | TaskRetryScheduled
    | TaskRequeued
    | TaskFinished
    | TaskHeld
    | AttemptStarting
    | AttemptStarted
    | AttemptStopping
    | AttemptEnded
    | TaskProgressed
    | MessagePosted
    | ToolStarted
    | ToolEnded
    | UsageReported
    | ProviderErrorReported
    | AskOpened
    | AskAttached
    | AskSettled
    | AskDelivered
    | SteerUpdated
    | ArtifactRecorded
    | LimitReached
    | WarningRaised
)

CHATTER = (
    TaskHeld
    | TaskProgressed
    | MessagePosted
    | ToolStarted
    | ToolEnded
    | UsageReported
    | ProviderErrorReported
)
"""Events that may linger on their way to a watcher; all others go at once."""


@value
class Recorded:
    """An event as it is logged: who did it, when, and the statuses it left behind."""

    event: Event
    time: Instant
    actor: Actor
    run_sequence: int
    run_status: _RunStatus | None = None
    """Set when this event changed it."""
    task_status: TaskStatus | None = None
    """Set when this event changed its task's."""
