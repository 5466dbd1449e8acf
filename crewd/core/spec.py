"""What a run's creator asked for: frozen, complete, defaults already filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

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
    PI = "pi"
    SCAFFOLD = "scaffold"


AGENTS: Final = frozenset({Adapter.PI})
"""Adapters whose workers are agents: told one prompt that is kept, in a session, turn by turn."""


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
class AgentSpec:
    """An agent as it was found when the run was created."""

    name: str
    source: str = ""
    """The file it was read from, or `builtin`."""
    system_prompt: str = ""
    append_system_prompt: bool = False
    """The system prompt is added to the program's own instead of replacing it."""
    model: str = ""
    """`provider/model`; empty: what the program chooses."""
    thinking: str = ""
    tools: tuple[str, ...] | None = None
    """The tools it may use; None: what the program offers; empty: none."""
    excluded_tools: tuple[str, ...] = ()
    project_context: bool = False
    """The program may add the project's own instructions (AGENTS.md)."""
    max_turns: int | None = None
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillSpec:
    """A skill as it was found when the run was created."""

    name: str
    description: str = ""
    source: str = ""
    """`builtin`, `user` or `project`."""
    folder: str = ""
    """Where the files are that it may refer to; empty for a built-in."""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSpec:
    """What a task must hand in."""

    name: str = ""
    """The result is kept as an artifact of this name too; empty: as a result only."""
    schema_json: str = ""
    """A JSON Schema that the result's data must satisfy, as JSON text; empty: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    id: str
    title: str = ""
    depends_on: tuple[str, ...] = ()
    phase: str = ""
    role: str = ""
    agent: str = ""
    """Which of `RunSpec.agents` does it; empty: none."""
    adapter: Adapter = Adapter.COMMAND
    model: str = ""
    """Overrides the agent's."""
    skills: tuple[str, ...] = ()
    """Of `RunSpec.skills`, in the order they are given to the worker."""
    skills_missing: tuple[str, ...] = ()
    """Skills that were named and not found."""
    read_only: bool = False
    reads: tuple[str, ...] = ()
    """Names of outputs of earlier tasks that the worker is given."""
    output: OutputSpec = OutputSpec()
    verify: bool = False
    """It checks the work of others: with the verdict `fail` in its data it has failed."""
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
    team: str = ""
    workflow: str = ""
    agent: str = ""
    """What the tasks were made from; empty where it was not named."""
    file: str = ""
    """Where its creator wrote it; empty: nowhere."""
    agents: Mapping[str, AgentSpec] = field(default_factory=dict[str, AgentSpec])
    skills: Mapping[str, SkillSpec] = field(default_factory=dict[str, SkillSpec])
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
