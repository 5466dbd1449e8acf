"""The words the core has for statuses, outcomes, causes and kinds: those of the contract."""

from __future__ import annotations

from enum import StrEnum


class RunStatus(StrEnum):
    QUEUED = "queued"
    PLANNING = "planning"
    RUNNING = "running"
    BLOCKED = "blocked"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TaskStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    NEEDS_ATTENTION = "needs_attention"
    CANCELLING = "cancelling"


class AttemptStatus(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    ENDED = "ended"


class Outcome(StrEnum):
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    LOST = "lost"
    NEEDS_ATTENTION = "needs_attention"


class Cause(StrEnum):
    EXIT = "exit"
    SIGNAL = "signal"
    TRANSIENT = "transient"
    THROTTLED = "throttled"
    QUOTA = "quota"
    AUTH = "auth"
    BILLING = "billing"
    MODEL_UNKNOWN = "model_unknown"
    CONTEXT_OVERFLOW = "context_overflow"
    EMPTY = "empty"
    TRUNCATED = "truncated"
    NO_RESULT = "no_result"
    DISK = "disk"
    WORKSPACE_MISSING = "workspace_missing"
    EXECUTABLE_MISSING = "executable_missing"
    SPAWN = "spawn"
    LOST = "lost"
    TIMEOUT = "timeout"
    STALLED = "stalled"
    CHECK_FAILED = "check_failed"
    REPORTED = "reported"
    CANCELLED = "cancelled"


class AskStatus(StrEnum):
    OPEN = "open"
    ANSWERED = "answered"
    DECLINED = "declined"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"


class AskKind(StrEnum):
    QUESTION = "question"
    PERMISSION = "permission"
    PLAN_APPROVAL = "plan_approval"
    BUDGET = "budget"
    CONFLICT = "conflict"
    STALL = "stall"


class Delivery(StrEnum):
    """How far an ask's outcome has got on its way to the worker."""

    NONE = "none"
    QUEUED = "queued"
    DELIVERED = "delivered"
    UNDELIVERABLE = "undeliverable"


class OutboxKind(StrEnum):
    """What an outbox row says to the worker; its adapter writes it in the worker's own words."""

    TASK = "task"
    ANSWER = "answer"
    STEER = "steer"
    STOP = "stop"
    PROMPT = "prompt"
    """A further message in the same session: a reminder, or to go on."""
    RENEW = "renew"
    """Forget all that was said: the next task follows in this process."""
    NEXT = "next"
    """Who the process is from now on; the runtime adds what its programs are told of that."""
    REPLY = "reply"
    """Whether what the worker handed in was taken."""


class AskChannel(StrEnum):
    """How the outcome of a question gets to its worker."""

    STDIN = "stdin"
    CALL = "call"
    """The worker calls WaitAsk."""


class ArtifactKind(StrEnum):
    RESULT = "result"
    PROMPT = "prompt"
    TRANSCRIPT = "transcript"
    PLAN = "plan"
    PATCH = "patch"
    REPORT = "report"
    SUMMARY = "summary"
    PROGRESS = "progress"
    LOG = "log"
    FILE = "file"


class ActorKind(StrEnum):
    OPERATOR = "operator"
    WORKER = "worker"
    POLICY = "policy"
    DAEMON = "daemon"
