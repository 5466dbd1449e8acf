"""Which tools a worker gets: by its agent's file and by the part it plays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from crewd.catalog.findings import Findings, did_you_mean, shown
from crewd.catalog.values import Agent, Source

ALL_TOOLS: Final = ("read", "edit", "write", "bash", "grep", "find", "ls", "ask")
"""The tools of pi, and the question to a person that crewd adds."""
_OTHER_NAMES: Final[Mapping[str, str]] = {"glob": "find", "multiedit": "edit", "list": "ls"}
_EVERYTHING: Final = frozenset({"*", "all"})
_NOTHING: Final = frozenset({"", "none", "[]"})
_NO_EDITS: Final = ("edit", "write")
_NO_CHANGES: Final = ("edit", "write", "bash")
_LOOKS: Final = ("read", "grep", "find", "ls", "ask")

READ_ONLY_ROLES: Final = frozenset(
    {"explorer", "analyst", "planner", "critic", "reviewer", "security-reviewer"}
)
WRITING_ROLES: Final = frozenset(
    {
        *("executor", "test-engineer", "writer", "verifier", "cold-verifier"),
        *("agent", "worker", "chain-executor"),
    }
)


@dataclass(frozen=True, slots=True)
class Policy:
    """Tools allowed and forbidden; None allows what the program offers."""

    tools: tuple[str, ...] | None = None
    excluded: tuple[str, ...] = ()


_ROLES: Final[Mapping[str, Policy]] = {
    "explorer": Policy(("read", "grep", "find", "ls", "bash", "ask"), _NO_EDITS),
    "analyst": Policy(None, _NO_EDITS),
    "planner": Policy(_LOOKS, _NO_CHANGES),
    "critic": Policy(_LOOKS, _NO_CHANGES),
    "executor": Policy(),
    "reviewer": Policy(("read", "grep", "find", "ls", "bash", "ask"), _NO_EDITS),
    "security-reviewer": Policy(_LOOKS, _NO_CHANGES),
    "writer": Policy(("read", "edit", "write", "ls", "ask"), ("bash",)),
    "verifier": Policy(("read", "grep", "find", "ls", "bash", "ask"), _NO_EDITS),
    "test-engineer": Policy(ALL_TOOLS),
}


def role_key(role: str) -> str:
    """Return the one spelling of a role's name."""
    return role.replace("_", "-")


def role_policy(role: str) -> Policy:
    return _ROLES.get(role_key(role), Policy())


def tool_policy(agent: Agent, role: str) -> Policy:
    """Return what an agent may use in a role.

    A built-in agent has the role's tools; the file of a user or project may name others. What
    either forbids is forbidden: a file cannot take that back.
    """
    part = role_policy(_part(agent, role))
    own, of_role = agent.tools, part.tools
    if agent.source is Source.BUILTIN:
        own, of_role = of_role, own
    tools = of_role if own is None else own
    return Policy(tools, tuple(dict.fromkeys((*part.excluded, *agent.excluded_tools))))


def is_read_only(agent: Agent, role: str) -> bool:
    """Tell whether the worker is to change nothing.

    The agent's file decides if it says so, then the role's name; a name nobody knows means what
    the tools allow.
    """
    if agent.read_only is not None:
        return agent.read_only
    if agent.command:
        return False
    part = role_key(_part(agent, role))
    if part in READ_ONLY_ROLES or part in WRITING_ROLES:
        return part in READ_ONLY_ROLES
    policy = tool_policy(agent, role)
    if policy.tools is None:
        return False
    return not (set(policy.tools) - set(policy.excluded)).intersection(_NO_CHANGES)


def tools_of(words: Iterable[str], line: int, findings: Findings) -> tuple[str, ...]:
    """Return the tools a file names; those there are not are told and left out."""
    known: dict[str, None] = {}
    for word in words:
        name = _OTHER_NAMES.get(word.lower(), word.lower())
        if name in _EVERYTHING:
            known.update(dict.fromkeys(ALL_TOOLS))
        elif name in ALL_TOOLS:
            known[name] = None
        elif name not in _NOTHING:
            fix = did_you_mean(name, ALL_TOOLS) or f"there are: {', '.join(ALL_TOOLS)}"
            findings.warn(line, f"there is no tool {shown(word)}; it was left out", fix)
    return tuple(known)


def _part(agent: Agent, role: str) -> str:
    """Return the name whose rules hold: the role's, or a built-in agent's in a role of its own."""
    known = role_key(role) in _ROLES or role_key(role) in WRITING_ROLES
    return role if known or agent.source is not Source.BUILTIN else agent.name
