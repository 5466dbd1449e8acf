"""Looking up by name; a name that leads nowhere is refused with the nearest there is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TypeVar

from crewd.catalog import teams, workflows
from crewd.catalog.findings import nearest
from crewd.catalog.skills import FILE
from crewd.catalog.values import Agent, Catalog, Problem, Severity, Skill, Team, Workflow
from crewd.core.errors import CrewdError, Reason, Violation

T = TypeVar("T")
_SHOWN = 100
_SUFFIXES = {"agent": ".md", "team": teams.SUFFIX, "workflow": workflows.SUFFIX}


def refused(field: str, message: str, name: str = "", choices: Iterable[str] = ()) -> CrewdError:
    """Return the refusal of a field, with the name that was perhaps meant."""
    close = nearest(name, choices) if name else ""
    said = f"{message}; did you mean {close!r}?" if close else message
    return CrewdError(Reason.SPEC_INVALID, f"{field}: {said}", violations=[Violation(field, said)])


@dataclass(frozen=True, slots=True)
class Finder:
    catalog: Catalog

    def agent(self, name: str, field: str = "agent") -> Agent:
        if name in self.catalog.agents:
            return self.catalog.agents[name]
        said = self._missing("agent", name, self.catalog.agents)
        raise CrewdError(
            Reason.AGENT_NOT_FOUND, said, violations=[Violation(field, said)], agent=name[:_SHOWN]
        )

    def team(self, name: str) -> Team:
        return self._named("team", name, self.catalog.teams)

    def workflow(self, name: str) -> Workflow:
        return self._named("workflow", name, self.catalog.workflows)

    def skill(self, name: str) -> Skill:
        return self._named("skill", name, self.catalog.skills)

    def _named(self, kind: str, name: str, items: Mapping[str, T]) -> T:
        if name in items:
            return items[name]
        raise refused(kind, self._missing(kind, name, items))

    def _missing(self, kind: str, name: str, items: Mapping[str, object]) -> str:
        close = nearest(name, items)
        hint = f"; did you mean {close!r}?" if close else ""
        broken = self.broken(kind, name)
        if broken is not None:
            hint += f"; {broken.file}:{broken.line} cannot be used: {broken.message}"
        looked = ", ".join(self.catalog.places.get(f"{kind}s", ()))
        return f"there is no {kind} {name[:_SHOWN]!r}{hint} (looked in {looked})"

    def broken(self, kind: str, name: str) -> Problem | None:
        """Return why a file of this name cannot be used, if there is one."""
        return next(
            (
                problem
                for problem in self.catalog.problems
                if problem.severity is Severity.ERROR and _is_of(problem.file, kind, name)
            ),
            None,
        )


def _is_of(file: str, kind: str, name: str) -> bool:
    path = PurePath(file)
    if kind == "skill":
        return path.name == FILE and path.parent.name == name
    suffix = _SUFFIXES[kind]
    own = path.name == f"{name}{suffix}"
    return own and (kind != "agent" or path.parent.name == "agents")
