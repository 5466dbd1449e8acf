"""Team files: front matter, then a line for each role."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from crewd.catalog import frontmatter
from crewd.catalog.agents import NAME, NAME_RULE, THINKING
from crewd.catalog.fields import Fields, is_skill_name, spelled, words_of
from crewd.catalog.files import Found, findings_of
from crewd.catalog.findings import Findings, did_you_mean, shown
from crewd.catalog.nodes import Entries, Items, Scalar
from crewd.catalog.text import heading, outside_fences
from crewd.catalog.values import Problem, Role, Source, Team
from crewd.core.spec import Limits

SUFFIX: Final = ".team.md"
LINE_CHARACTERS: Final = 4000
ROLE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LIST: Final = r"[^\s,]+(?:[ \t]*,[ \t]*[^\s,]+)*"
_PAIR: Final = re.compile(
    rf"(?<!\S)(?:(?P<list>fallbackModels|fallback_models|skills)=(?P<items>{_LIST})"
    r"|(?P<key>[A-Za-z][A-Za-z_]*)=(?P<value>\S*))"
)
_KEYS: Final = ("agent", "model", "thinking", "skills")
_IDLE_KEYS: Final = ("fallback_models", "max_concurrency")
_NO_EFFECT: Final[frozenset[str]] = frozenset(
    {
        *("workspace_mode", "observability", "source", "triggers", "trigger", "use_when"),
        *("avoid_when", "cost", "category", "routing"),
    }
)


def parse(found: Found) -> tuple[Team | None, list[Problem]]:
    """Return the team, None if it cannot be used, and what is wrong."""
    findings = findings_of(found)
    document = frontmatter.read(found.text, findings)
    fields = Fields(document.head, findings)
    name = fields.text("name") or found.path.name.removesuffix(SUFFIX)
    if not NAME.fullmatch(name):
        findings.error(fields.line("name"), f"{shown(name)} is no name for a team", NAME_RULE)
    roles = [
        *_listed_roles(fields),
        *body_roles(document.body, document.body_line, findings),
    ]
    team = Team(
        name=name,
        description=fields.text("description"),
        source=found.place.source,
        file=findings.file,
        workflow=fields.text("default_workflow", "workflow"),
        max_concurrent_workers=concurrency(fields, found.place.source),
        roles=_distinct(roles, findings),
    )
    fields.finish(_NO_EFFECT)
    if not team.roles and not findings.failed:
        findings.error(1, "the team has no roles", "add a line for each: - planner: agent=planner")
    return (None if findings.failed else team), findings.problems


def settled(team: Team, is_agent: Callable[[str], bool], findings: Findings) -> Team:
    """Return the team with the roles there are agents for, and tell of the others."""
    roles: list[Role] = []
    for role in team.roles:
        if is_agent(role.agent):
            roles.append(role)
        elif role.agent_named:
            fix = "see `crew agents`, or add its file to .crew/agents"
            findings.error(role.line, f"role {role.name}: there is no agent {role.agent}", fix)
        else:
            message = f"{shown(role.name)} is no role: no agent is called so; it was left out"
            findings.warn(role.line, message, f"name one: - {role.name}: agent=NAME")
    if not roles and not findings.failed:
        findings.error(1, "the team has no roles", "add a line for each: - planner: agent=planner")
    return replace(team, roles=tuple(roles))


def concurrency(fields: Fields, source: Source) -> int | None:
    """Return how many workers may work at once. A project may only lower the default."""
    names = ("max_concurrency", "max_concurrent_workers")
    count = fields.count(*names)
    most = Limits().max_concurrent_workers
    if count is None or source is not Source.PROJECT or count <= most:
        return count
    line = next(fields.line(name) for name in names if fields.has(name))
    fields.findings.warn(line, f"a project's file may not go above {most}; {most} it is")
    return most


def role_line(line: str, number: int, findings: Findings) -> Role | None:
    """Read `- name: agent=A model=M skills=a,b description`; None when it is no role."""
    if not line.startswith(("- ", "-\t")):
        return None
    if len(line) > LINE_CHARACTERS:
        findings.error(number, f"the line has more than {LINE_CHARACTERS} characters")
        return None
    name, _, rest = line[1:].partition(":")
    name = name.strip()
    if not ROLE.fullmatch(name):
        fix = "write `- name: agent=NAME`; for prose use no bullet, or put roles under ## Roles"
        findings.warn(number, f"{shown(line.strip())} is no role; it was left out", fix)
        return None
    return _role(name, rest, number, findings)


def body_roles(body: str, first_line: int, findings: Findings) -> Iterator[Role]:
    """Give the roles in the text: those under a heading `Roles`, or all if there is none."""
    lines = list(outside_fences(body, first_line))
    headings = [(n, title.lower()) for n, text in lines if (title := heading(text))]
    begin = next((n for n, title in headings if title == "roles"), None)
    end = next((n for n, _ in headings if begin is not None and n > begin), None)
    for number, text in lines:
        if begin is not None and (number <= begin or (end is not None and number >= end)):
            continue
        role = role_line(text, number, findings)
        if role is not None:
            yield role


def _role(name: str, text: str, line: int, findings: Findings) -> Role:
    pairs: dict[str, str] = {}
    description = text
    for found in _PAIR.finditer(text):
        key = spelled(found["list"] or found["key"])
        if key in _KEYS or key in _IDLE_KEYS:
            pairs[key] = found["items"] or found["value"] or ""
            description = description.replace(found[0], "", 1)
        else:
            fix = did_you_mean(key, (*_KEYS, *_IDLE_KEYS)) or f"a role has {', '.join(_KEYS)}"
            findings.warn(line, f"role {name}: unknown key {shown(key)}", fix)
    for key in _IDLE_KEYS:
        if key in pairs:
            findings.warn(line, f"role {name}: {key} has no effect", "remove it")
    skills, default_skills = _skills(name, pairs.get("skills", ""), line, findings)
    return Role(
        name=name,
        agent=pairs.get("agent") or name,
        agent_named="agent" in pairs,
        model="" if pairs.get("model") == "inherit" else pairs.get("model", ""),
        thinking=_thinking(name, pairs.get("thinking", ""), line, findings),
        skills=skills,
        default_skills=default_skills,
        description=" ".join(description.split()),
        line=line,
    )


def _skills(name: str, text: str, line: int, findings: Findings) -> tuple[tuple[str, ...], bool]:
    if text == "false":
        return (), False
    skills = words_of(text)
    for skill in skills:
        if not is_skill_name(skill):
            findings.error(line, f"role {name}: {shown(skill)} is no name of a skill")
    return skills, True


def _thinking(name: str, text: str, line: int, findings: Findings) -> str:
    if text in {"", "false"}:
        return ""
    if text not in THINKING:
        fix = did_you_mean(text, THINKING)
        known = ", ".join(THINKING)
        findings.error(line, f"role {name}: thinking {shown(text)} is none of {known}", fix)
    return text


def _listed_roles(fields: Fields) -> Iterator[Role]:
    node = fields.node("roles")
    if node is None:
        return
    if not isinstance(node, Items):
        fields.findings.error(node.line, "roles: a list is expected", "- name: planner")
        return
    for item in node.items:
        role = None
        if isinstance(item, Scalar):
            role = role_line(f"- {item.text}", item.line, fields.findings)
        elif isinstance(item, Entries):
            role = _mapped_role(item, fields.findings)
        else:
            fields.findings.error(item.line, "roles: a role is a name or a mapping")
        if role is not None:
            yield role


def _mapped_role(item: Entries, findings: Findings) -> Role | None:
    fields = Fields(item, findings)
    name, agent = fields.text("name"), fields.text("agent")
    skills, default_skills = fields.skills("skills", "skill")
    model = fields.text("model")
    role = Role(
        name=name,
        agent=agent or name,
        agent_named=bool(agent),
        model="" if model in {"inherit", "false"} else model,
        thinking=fields.choice(THINKING, "thinking"),
        skills=skills,
        default_skills=default_skills,
        description=fields.text("description"),
        line=item.line,
    )
    fields.finish(_IDLE_KEYS)
    if ROLE.fullmatch(name):
        return role
    findings.error(item.line, f"roles: {shown(name)} is no name for a role", "add `name: …`")
    return None


def _distinct(roles: list[Role], findings: Findings) -> tuple[Role, ...]:
    known: dict[str, Role] = {}
    for role in roles:
        before = known.setdefault(role.name, role)
        if before is not role:
            message = f"the role {role.name} is there twice, first in line {before.line}"
            findings.error(role.line, message, "give it another name, or remove it")
    return tuple(known.values())
