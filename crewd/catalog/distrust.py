"""What of a project's own files would start a program or hand out variables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from crewd.catalog.values import (
    Agent,
    Catalog,
    Problem,
    Severity,
    Source,
    Step,
    Untrusted,
    Workflow,
)


def of_agent(agent: Agent) -> Iterator[Untrusted]:
    if agent.source is not Source.PROJECT:
        return
    if agent.command:
        what = f"agent {agent.name} starts {' '.join(agent.command)}"
        yield Untrusted(agent.file, agent.line, what)
    if agent.env_from:
        what = f"agent {agent.name} is given {', '.join(agent.env_from)}"
        yield Untrusted(agent.file, agent.line, what)


def of_step(workflow: Workflow, step: Step) -> Iterator[Untrusted]:
    if workflow.source is Source.PROJECT and step.command:
        what = f"step {step.id} starts {' '.join(step.command)}"
        yield Untrusted(workflow.file, step.line, what)


def warnings(catalog: Catalog, root: Path) -> Iterator[Problem]:
    """Tell everything that no run may use as long as the project is not trusted."""
    fix = f"read its .crew folder, then: crewd trust {quote(str(root))}"
    for found in _all(catalog):
        message = f"{found.what}, and the project is not trusted: a run with it is refused"
        yield Problem(found.file, found.line, Severity.WARNING, message, fix)


def _all(catalog: Catalog) -> Iterator[Untrusted]:
    for agent in catalog.agents.values():
        yield from of_agent(agent)
    for workflow in catalog.workflows.values():
        for step in workflow.steps:
            yield from of_step(workflow, step)
