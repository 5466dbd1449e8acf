"""What a run's creator asked for: frozen, complete, defaults already filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from crewd.core.units import MINUTE, SECOND, Span


class FailureMode(StrEnum):
    FAIL_FAST = "fail_fast"
    CONTINUE = "continue"


class OnNeedsAttention(StrEnum):
    WAIT = "wait"
    CONTINUE = "continue"


class OnTimeout(StrEnum):
    """What happens to a question that nobody answered in time."""

    WAIT = "wait"
    CONTINUE = "continue"
    FAIL_TASK = "fail_task"
    DECLINE = "decline"
    DEFAULT_OPTION = "default_option"


class Adapter(StrEnum):
    COMMAND = "command"
    JSONL = "jsonl"
    SCAFFOLD = "scaffold"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how fast a failed task is tried again."""

    max_attempts: int = 3
    backoff: Span = SECOND
    max_backoff: Span = MINUTE
    jitter: float = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class AskPolicy:
    """What a question does that names no policy of its own. No timeout waits for ever."""

    on_timeout: OnTimeout = OnTimeout.WAIT
    timeout: Span | None = None
    default_option_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of a run. None is unlimited."""

    max_concurrent_workers: int = 4
    max_tasks: int = 10_000
    max_duration: Span | None = None
    max_tokens: int | None = None
    max_cost_micros: int | None = None
    max_turns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    id: str
    title: str = ""
    depends_on: tuple[str, ...] = ()
    phase: str = ""
    role: str = ""
    adapter: Adapter = Adapter.COMMAND
    prompt: str = ""
    command: tuple[str, ...] = ()
    executable: str = ""
    """Absolute path `command[0]` resolved to when the run was created."""
    cwd: str = ""
    """Absolute directory the worker starts in."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    env_from: tuple[str, ...] = ()
    timeout: Span | None = None
    retry: RetryPolicy = RetryPolicy()
    keep_children: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    goal: str = ""
    title: str = ""
    cwd: str
    project_root: str = ""
    path: str = ""
    """The creator's PATH, absolute entries only; workers get it."""
    limits: Limits = Limits()
    failure_mode: FailureMode = FailureMode.FAIL_FAST
    on_needs_attention: OnNeedsAttention = OnNeedsAttention.WAIT
    retry: RetryPolicy = RetryPolicy()
    asks: AskPolicy = AskPolicy()
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables sent with CreateRun; every worker gets them."""
    keep: bool = False
    tasks: tuple[TaskSpec, ...] = ()
    """In file order. Empty once the run is stored: each task row keeps its own spec."""
