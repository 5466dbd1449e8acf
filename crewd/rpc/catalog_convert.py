"""Things of the catalog as messages."""

from __future__ import annotations

from typing import Final

from crewd.catalog import (
    Agent,
    Problem,
    Role,
    Severity,
    Skill,
    Source,
    Step,
    Team,
    Workflow,
)
from crewd.catalog.tools import is_read_only
from crewd.catalog.workflows import needed
from crewd.rpc.wire import cut
from crewd.v1 import catalog_pb2 as pb

BRIEF: Final = 1024
"""The most bytes of a description in a list."""
_MESSAGE_BYTES: Final = 2048
_SOURCES: Final = {s: pb.CatalogSource.Value(f"CATALOG_SOURCE_{s.name}") for s in Source}
_SEVERITIES: Final = {s: pb.CatalogSeverity.Value(f"CATALOG_SEVERITY_{s.name}") for s in Severity}


def agent(agent: Agent, *, brief: bool) -> pb.Agent:
    return pb.Agent(
        name=agent.name,
        description=_described(agent.description, brief=brief),
        source=_SOURCES[agent.source],
        file=agent.file,
        adapter=agent.adapter.value,
        command=agent.command,
        env_from=agent.env_from,
        model=agent.model,
        thinking=agent.thinking,
        default_tools=agent.tools is None,
        tools=agent.tools or (),
        excluded_tools=agent.excluded_tools,
        skills=agent.skills,
        append_system_prompt=agent.append_system_prompt,
        project_context=agent.project_context,
        max_turns=agent.max_turns or 0,
        read_only=is_read_only(agent, agent.name),
        system_prompt="" if brief else agent.system_prompt,
    )


def team(team: Team, *, brief: bool) -> pb.Team:
    return pb.Team(
        name=team.name,
        description=_described(team.description, brief=brief),
        source=_SOURCES[team.source],
        file=team.file,
        workflow=team.workflow or "default",
        max_concurrent_workers=team.max_concurrent_workers or 0,
        roles=map(_role, team.roles),
    )


def workflow(workflow: Workflow, *, brief: bool) -> pb.Workflow:
    return pb.Workflow(
        name=workflow.name,
        description=_described(workflow.description, brief=brief),
        source=_SOURCES[workflow.source],
        file=workflow.file,
        max_concurrent_workers=workflow.max_concurrent_workers or 0,
        steps=[_step(step, workflow, brief=brief) for step in workflow.steps],
    )


def skill(skill: Skill, *, brief: bool) -> pb.Skill:
    return pb.Skill(
        name=skill.name,
        description=_described(skill.description, brief=brief),
        source=_SOURCES[skill.source],
        file=skill.file,
        folder=skill.folder,
        text="" if brief else skill.text,
    )


def problem(problem: Problem) -> pb.CatalogProblem:
    return pb.CatalogProblem(
        file=problem.file,
        line=problem.line,
        severity=_SEVERITIES[problem.severity],
        message=cut(problem.message, _MESSAGE_BYTES),
        fix=cut(problem.fix, _MESSAGE_BYTES),
    )


def _described(text: str, *, brief: bool) -> str:
    return cut(text, BRIEF) if brief else text


def _role(role: Role) -> pb.TeamRole:
    return pb.TeamRole(
        name=role.name,
        agent=role.agent,
        model=role.model,
        thinking=role.thinking,
        skills=role.skills,
        no_default_skills=not role.default_skills,
        description=role.description,
    )


def _step(step: Step, workflow: Workflow, *, brief: bool) -> pb.WorkflowStep:
    return pb.WorkflowStep(
        id=step.id,
        role=step.role,
        depends_on=needed(step, workflow.steps),
        output=step.output,
        reads=step.reads,
        model=step.model,
        skills=step.skills,
        no_default_skills=not step.default_skills,
        verify=step.verify,
        parallel_group=step.parallel_group,
        adapter=step.adapter.value if step.adapter else "",
        command=step.command,
        text="" if brief else step.text,
    )
