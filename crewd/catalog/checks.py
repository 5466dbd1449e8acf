"""What only shows when all files are known: names that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from crewd.catalog.findings import Findings, did_you_mean, shown
from crewd.catalog.teams import settled
from crewd.catalog.values import Catalog, Problem, Team, Workflow
from crewd.catalog.workflows import without_role


def checked(catalog: Catalog) -> Catalog:
    """Return the catalog without what cannot work, and with the problems that shows."""
    problems = list(catalog.problems)
    teams: dict[str, Team] = {}
    for name, team in catalog.teams.items():
        kept, told = _team(team, catalog)
        problems += told
        if kept is not None:
            teams[name] = kept
    for workflow in catalog.workflows.values():
        problems += _workflow(workflow, catalog, teams.values())
    problems += _skills(catalog)
    problems.sort(key=lambda problem: (problem.file, problem.line))
    return replace(catalog, teams=teams, problems=tuple(problems))


def _team(team: Team, catalog: Catalog) -> tuple[Team | None, list[Problem]]:
    findings = Findings(team.file)
    kept = settled(team, catalog.agents.__contains__, findings)
    if team.workflow and team.workflow not in catalog.workflows:
        fix = did_you_mean(team.workflow, catalog.workflows) or "see `crew workflows`"
        message = f"the team's workflow {shown(team.workflow)} is not there"
        findings.error(team.line, message, fix)
    elif team.workflow:
        roles = [role.name for role in kept.roles]
        for step in without_role(catalog.workflows[team.workflow], roles):
            message = f"it has no role {step.role}, which step {step.id} of {team.workflow} needs"
            fix = f"add it: - {step.role}: agent=NAME"
            findings.error(team.line, message, fix)
    return (None if findings.failed else kept), findings.problems


def _workflow(workflow: Workflow, catalog: Catalog, teams: Iterable[Team]) -> list[Problem]:
    findings = Findings(workflow.file)
    roles = {role.name for team in teams for role in team.roles} | set(catalog.agents)
    for step in without_role(workflow, roles):
        fix = did_you_mean(step.role, roles) or "see `crew agents`"
        message = (
            f"step {step.id}: no team has a role {shown(step.role)}, and no agent is called so"
        )
        findings.warn(step.line, message, fix)
    return findings.problems


def _skills(catalog: Catalog) -> Iterator[Problem]:
    for file, line, whose, names in _wanted(catalog):
        findings = Findings(file)
        for name in names:
            if name not in catalog.skills:
                fix = did_you_mean(name, catalog.skills) or "see `crew skills`"
                findings.warn(line, f"{whose} names the skill {name}, which is not there", fix)
        yield from findings.problems


def _wanted(catalog: Catalog) -> Iterator[tuple[str, int, str, tuple[str, ...]]]:
    for agent in catalog.agents.values():
        yield agent.file, agent.line, "it", agent.skills
    for team in catalog.teams.values():
        for role in team.roles:
            yield team.file, role.line, f"role {role.name}", role.skills
    for workflow in catalog.workflows.values():
        for step in workflow.steps:
            yield workflow.file, step.line, f"step {step.id}", step.skills
