"""The rows of a run: what is stored, listed and recovered.

A `RunState` owns them. Only `apply` changes them, which is why they are not frozen; everything
else reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from crewd.core.spec import OnTimeout, RunSpec, TaskSpec
from crewd.core.units import EPOCH, Instant, Span
from crewd.core.values import record, value
from crewd.core.words import (
    ActorKind,
    ArtifactKind,
    AskChannel,
    AskKind,
    AskStatus,
    AttemptStatus,
    Cause,
    Delivery,
    OutboxKind,
    Outcome,
    RunStatus,
    TaskStatus,
)


@value
class Actor:
    """Who did it. `name` is the system user or the policy, `client` the program used."""

    kind: ActorKind
    name: str = ""
    client: str = ""


DAEMON = Actor(ActorKind.DAEMON, "crewd")


@record
class Usage:
    """What workers say they used. Zero turns and tokens means nothing was reported."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    turns: int = 0
    cost_micros: int | None = None

    def plus(self, other: Usage) -> Usage:
        costs = [c for c in (self.cost_micros, other.cost_micros) if c is not None]
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            turns=self.turns + other.turns,
            cost_micros=sum(costs) if costs else None,
        )


NO_USAGE = Usage()


@record
class Progress:
    percent: float | None = None
    step: str = ""
    message: str = ""
    update_time: Instant = EPOCH


@record
class Result:
    text: str = ""
    truncated: bool = False
    data_json: str = ""
    """The worker's structured result as JSON text; empty when it gave none."""
    artifact_id: str = ""
    """Where the whole text is when it is too long for a row."""
    sha256: str = ""
    """Of that artifact: the name of its file."""


NO_RESULT = Result()


@record
class HandedIn:
    """What the worker itself says of its work; together with how it ends it is the verdict."""

    outcome: Outcome
    cause: Cause | None = None
    message: str = ""
    retryable: bool = False


@record
class Failure:
    """Why a run or task is not completed, for people and for clients that branch."""

    reason: str
    message: str
    task_id: str = ""
    retryable: bool = False


@value
class Survivor:
    """A process of a stopped tree that could not be proven gone."""

    pid: int
    command: str = ""


@record
class Capabilities:
    can_ask: bool = False
    can_steer: bool = False
    can_interrupt: bool = False
    can_resume: bool = False


NO_CAPABILITIES = Capabilities()


@record
class AskOption:
    id: str
    label: str
    description: str = ""
    effect: str = ""


@record
class Answer:
    option_ids: tuple[str, ...] = ()
    text: str = ""
    note: str = ""


@dataclass(slots=True, kw_only=True)
class Run:
    id: str
    spec: RunSpec
    title: str = ""
    status: RunStatus = RunStatus.QUEUED
    status_reason: str = ""
    status_message: str = ""
    stopping: str = ""
    """Why nothing new may start: `cancel`, `fail_fast`, `limit`, `ask`; empty while it may."""
    requeueing: str = ""
    """What a resume or retry still puts back: `all` that is not completed, or `dependents` that
    were skipped for what is queued again; empty otherwise. Nothing starts meanwhile."""
    cancel_reason: str = ""
    cancel_force: bool = False
    created_by: str = ""
    request_id: str = ""
    progress: Progress | None = None
    usage: Usage = NO_USAGE
    limits_reached: tuple[str, ...] = ()
    """Limits already warned about, as `name` or `name:stopped`."""
    result: Result | None = None
    error: Failure | None = None
    resume_count: int = 0
    task_counts: dict[TaskStatus, int] = field(default_factory=dict[TaskStatus, int])
    open_ask_count: int = 0
    create_time: Instant = EPOCH
    start_time: Instant | None = None
    end_time: Instant | None = None
    update_time: Instant = EPOCH
    deadline: Instant | None = None
    last_sequence: int = 0
    last_run_sequence: int = 0


@dataclass(slots=True, kw_only=True)
class Task:
    run_id: str
    id: str
    position: int
    spec: TaskSpec
    status: TaskStatus = TaskStatus.QUEUED
    status_reason: str = ""
    status_message: str = ""
    attempt: int = 0
    spent_attempts: int = 0
    """Attempts that count against `retry.max_attempts`; a person's retry sets it back to 0."""
    not_before: Instant | None = None
    progress: Progress | None = None
    current_tool: str = ""
    last_activity_time: Instant | None = None
    capabilities: Capabilities = NO_CAPABILITIES
    open_ask_ids: tuple[str, ...] = ()
    usage: Usage = NO_USAGE
    result: Result | None = None
    error: Failure | None = None
    resolution_note: str = ""
    create_time: Instant = EPOCH
    start_time: Instant | None = None
    end_time: Instant | None = None
    update_time: Instant = EPOCH
    last_sequence: int = 0

    @property
    def has_unkept_result(self) -> bool:
        """Say whether its result is to be an artifact of its own and is none yet."""
        done = self.status is TaskStatus.COMPLETED and self.attempt > 0
        named = self.spec.output.name and self.result is not None
        return bool(done and named and self.result and not self.result.artifact_id)


@dataclass(slots=True, kw_only=True)
class Attempt:
    run_id: str
    task_id: str
    number: int
    status: AttemptStatus = AttemptStatus.STARTING
    epoch: str = ""
    """The host process that was told to start it."""
    outcome: Outcome | None = None
    cause: Cause | None = None
    message: str = ""
    retryable: bool = False
    stop_cause: str = ""
    """Why it was stopped: `cancelled`, `timeout`, `ask_timeout`, `lingering`, `fail_fast`,
    `limit`; empty while it was not."""
    adapter: str = ""
    model: str = ""
    worker_name: str = ""
    worker_version: str = ""
    session_id: str = ""
    argv: tuple[str, ...] = ()
    pid: int = 0
    host: str = ""
    exit_code: int | None = None
    signal: int | None = None
    survivors: tuple[Survivor, ...] = ()
    usage: Usage = NO_USAGE
    result: Result | None = None
    handed_in: HandedIn | None = None
    """Set once: from then on the worker has nothing more to do."""
    nudges: int = 0
    """Prompts sent after the first one: to go on, or to hand in."""
    rejections: int = 0
    """Results that did not satisfy the task's schema."""
    prompt_artifact_id: str = ""
    transcript_artifact_id: str = ""
    stdout_offset: int = 0
    """How much of the host's spool of stdout has been read, at a line end."""
    stderr_offset: int = 0
    stdout_bytes: int = 0
    """Length of the transcript of stdout: what ReadOutput can serve."""
    stderr_bytes: int = 0
    adapter_state: str = "{}"
    """The adapter's fold state, JSON, at `stdout_offset`."""
    stdin_seq: int = 0
    """The highest outbox sequence ever given out for this attempt."""
    deadline: Instant | None = None
    """When it times out; None without a timeout, and while it waits for a person."""
    time_left: Span | None = None
    """What was left of its timeout when it began to wait for a person."""
    stall_at: Instant | None = None
    """An agent must have said something by then; None for other workers."""
    linger_until: Instant | None = None
    """It handed in its result and must have exited by then."""
    force_until: Instant | None = None
    """A forced stop settles then, with or without the host's proof."""
    create_time: Instant = EPOCH
    start_time: Instant | None = None
    end_time: Instant | None = None

    @property
    def key(self) -> str:
        return f"{self.run_id}/{self.task_id}/{self.number}"


@dataclass(slots=True, kw_only=True)
class Ask:
    id: str
    run_id: str
    task_id: str
    attempt: int
    worker_ref: str = ""
    channel: AskChannel = AskChannel.STDIN
    kind: AskKind = AskKind.QUESTION
    status: AskStatus = AskStatus.OPEN
    title: str = ""
    question: str = ""
    detail: str = ""
    options: tuple[AskOption, ...] = ()
    allow_text: bool = True
    min_choices: int = 0
    max_choices: int = 1
    default_option_id: str = ""
    on_timeout: OnTimeout = OnTimeout.WAIT
    expire_time: Instant | None = None
    answer: Answer | None = None
    """Redacted: the worker gets what was said, everyone else sees this."""
    answer_masked: bool = False
    """Something of the answer was redacted, so it cannot be handed on to another attempt."""
    raw_text: str = ""
    """The masked answer's own text, for a worker that calls WaitAsk, until its attempt ends."""
    answered_by: Actor | None = None
    delivery: Delivery = Delivery.NONE
    run_title: str = ""
    task_title: str = ""
    workspace_cwd: str = ""
    create_time: Instant = EPOCH
    settle_time: Instant | None = None
    last_sequence: int = 0


@dataclass(slots=True, kw_only=True)
class Artifact:
    """Something a run keeps: its bytes are a file named by their digest, this is its row."""

    id: str
    run_id: str
    task_id: str = ""
    attempt: int = 0
    name: str
    kind: ArtifactKind = ArtifactKind.FILE
    media_type: str = ""
    size_bytes: int = 0
    sha256: str = ""
    """Lower-case hex; empty for a transcript, whose bytes are the attempt's."""
    source_path: str = ""
    description: str = ""
    truncated: bool = False
    redacted: bool = False
    """Something in it was masked."""
    create_time: Instant = EPOCH
    last_sequence: int = 0


@record
class Outbox:
    """One message to a worker's stdin, kept until the host has it."""

    run_id: str
    task_id: str
    attempt: int
    seq: int
    kind: OutboxKind
    body: str
    """JSON text; the adapter turns it into what the worker understands."""
    ref: str = ""
    """The ask or steer it carries, so that its delivery can be told."""
