"""A home and a project with files of a catalog, for tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from crewd.catalog import Catalog, Plan, PlanRequest, Problem, Severity, load, plan


@dataclass(frozen=True)
class Places:
    root: Path

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def config(self) -> Path:
        return self.home / ".config" / "crewd"

    @property
    def project(self) -> Path:
        return self.root / "project"

    def write(self, path: Path, text: str | bytes) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def agent(self, name: str, text: str = "---\ndescription: d\n---\nDo it.") -> Path:
        return self.write(self.project / ".crew" / "agents" / f"{name}.md", text)

    def user_agent(self, name: str, text: str = "---\ndescription: d\n---\nDo it.") -> Path:
        return self.write(self.config / "agents" / f"{name}.md", text)

    def team(self, name: str, text: str) -> Path:
        return self.write(self.project / ".crew" / "teams" / f"{name}.team.md", text)

    def workflow(self, name: str, text: str) -> Path:
        return self.write(self.project / ".crew" / "workflows" / f"{name}.workflow.md", text)

    def skill(self, name: str, text: str) -> Path:
        return self.write(self.project / ".crew" / "skills" / name / "SKILL.md", text)

    def load(self) -> Catalog:
        self.project.mkdir(exist_ok=True)
        return load(self.project, self.home, self.config)

    def plan(self, request: PlanRequest) -> Plan:
        return plan(self.load(), request)

    def problems(self) -> list[str]:
        """Give the problems as `file:line: severity: message`."""
        return [told(problem) for problem in self.load().problems]

    def errors(self) -> list[Problem]:
        return [p for p in self.load().problems if p.severity is Severity.ERROR]


def told(problem: Problem) -> str:
    name = Path(problem.file).name
    return f"{name}:{problem.line}: {problem.severity}: {problem.message}"
