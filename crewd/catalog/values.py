"""What a catalog holds: agents, teams, workflows and skills as their files describe them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from crewd.core.spec import Adapter, AgentSpec, SkillSpec, TaskSpec


class Severity(StrEnum):
    ERROR = "error"
    """The file is left out."""
    WARNING = "warning"


class Source(StrEnum):
    BUILTIN = "builtin"
    USER = "user"
    PROJECT = "project"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a file, where, and what to do."""

    file: str
    line: int
    severity: Severity
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    name: str
    description: str = ""
    source: Source
    file: str
    line: int = 1
    model: str = ""
    """Empty: what the program chooses."""
    thinking: str = ""
    tools: tuple[str, ...] | None = None
    """None: the role's, or what the program offers; empty: none."""
    excluded_tools: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    append_system_prompt: bool = False
    project_context: bool = False
    max_turns: int | None = None
    read_only: bool | None = None
    """None: the file does not say."""
    adapter: Adapter = Adapter.PI
    command: tuple[str, ...] = ()
    env_from: tuple[str, ...] = ()
    system_prompt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A part that a team gives to an agent."""

    name: str
    agent: str
    agent_named: bool = False
    """The file says which agent; otherwise it is the one of the role's name."""
    model: str = ""
    thinking: str = ""
    skills: tuple[str, ...] = ()
    default_skills: bool = True
    """The skills that go with the role's name are given too."""
    description: str = ""
    line: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    name: str
    description: str = ""
    source: Source
    file: str
    line: int = 1
    workflow: str = ""
    """What it does when no workflow is named; empty: `default`."""
    max_concurrent_workers: int | None = None
    roles: tuple[Role, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    id: str
    role: str = ""
    depends_on: tuple[str, ...] = ()
    output: str = ""
    reads: tuple[str, ...] = ()
    model: str = ""
    skills: tuple[str, ...] = ()
    default_skills: bool = True
    verify: bool = False
    """It checks the work of others."""
    parallel_group: str = ""
    adapter: Adapter | None = None
    """None: the agent's."""
    command: tuple[str, ...] = ()
    text: str = "{goal}"
    line: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    name: str
    description: str = ""
    source: Source
    file: str
    line: int = 1
    max_concurrent_workers: int | None = None
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    name: str
    description: str = ""
    source: Source
    file: str
    line: int = 1
    folder: str = ""
    """Where the files are that it may refer to; empty for a built-in."""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All there is for one project, by name, and all that is wrong with the files."""

    agents: Mapping[str, Agent] = field(default_factory=dict[str, Agent])
    teams: Mapping[str, Team] = field(default_factory=dict[str, Team])
    workflows: Mapping[str, Workflow] = field(default_factory=dict[str, Workflow])
    skills: Mapping[str, Skill] = field(default_factory=dict[str, Skill])
    problems: Sequence[Problem] = ()
    places: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """The folders that were looked into, by kind: `agents`, `teams`, `workflows`, `skills`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleChange:
    """What a run changes about one role; empty: nothing."""

    agent: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTask:
    """A task that its author wrote out, as far as it names things of the catalog."""

    id: str
    agent: str = ""
    role: str = ""
    prompt: str = ""
    skills: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What is to be done, and by whom: by a team, a workflow, an agent, or the tasks given."""

    goal: str = ""
    team: str = ""
    workflow: str = ""
    agent: str = ""
    tasks: tuple[NamedTask, ...] = ()
    role_overrides: Mapping[str, RoleChange] = field(default_factory=dict[str, RoleChange])


@dataclass(frozen=True, slots=True)
class Untrusted:
    """Something of a project's own files that would start a program or hand out variables."""

    file: str
    line: int
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a request comes to.

    Of tasks that their author wrote out it has what the catalog knows: agent, adapter, command,
    variables, skills, and whether they only read.
    """

    tasks: tuple[TaskSpec, ...] = ()
    agents: Mapping[str, AgentSpec] = field(default_factory=dict[str, AgentSpec])
    """By the names tasks use. An agent that plays parts with different tools is there per part."""
    skills: Mapping[str, SkillSpec] = field(default_factory=dict[str, SkillSpec])
    team: str = ""
    workflow: str = ""
    max_concurrent_workers: int | None = None
    untrusted: tuple[Untrusted, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Files that would have been used in place of something of their name, and cannot be."""
