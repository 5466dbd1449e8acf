"""`crew agents`, `teams`, `workflows` and `skills`: what there is for a directory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from google.protobuf.message import Message

from crewd_client.client import Client
from crewd_client.commands.exits import Exit
from crewd_client.commands.pick import PAGE
from crewd_client.commands.session import Session, json_option
from crewd_client.commands.terminal import (
    clean_block,
    note,
    put,
    put_json,
    put_table,
    shorten,
    word,
)
from crewd_client.json import to_json
from crewd_client.pages import list_agents, list_skills, list_teams, list_workflows
from crewd_client.v1.catalog_pb2 import Agent, Skill, Team, Workflow, WorkflowStep
from crewd_client.v1.catalog_service_pb2 import (
    GetAgentRequest,
    GetSkillRequest,
    GetTeamRequest,
    GetWorkflowRequest,
)

F = TypeVar("F", bound=Callable[..., Any])
M = TypeVar("M", bound=Message)
_DESCRIPTION = 100


def catalog_options(function: F) -> F:
    """Take a name, a directory and --json, as all four commands do."""
    where = click.option("--cwd", metavar="DIR", help="Of the project there; default: here.")
    return click.argument("name", required=False)(where(json_option(function)))


@click.command()
@catalog_options
@click.pass_obj
def agents(session: Session, /, name: str | None, *, cwd: str | None, as_json: bool) -> int:
    """List the agents there are, or show NAME with its instructions."""
    where = directory(cwd)

    async def work(client: Client) -> int:
        if name is not None:
            request = GetAgentRequest(cwd=where, name=name)
            _show((await client.catalog.GetAgent(request)).agent, _put_agent, as_json=as_json)
            return Exit.DONE
        found = [each async for each in list_agents(client, where, page_size=PAGE)]
        _list(found, ("AGENT", "SOURCE", "ADAPTER", "MODEL", "WHAT"), _agent_cells, as_json=as_json)
        return Exit.DONE

    return session.perform(work, start=True)


@click.command()
@catalog_options
@click.pass_obj
def teams(session: Session, /, name: str | None, *, cwd: str | None, as_json: bool) -> int:
    """List the teams there are, or show NAME with its roles."""
    where = directory(cwd)

    async def work(client: Client) -> int:
        if name is not None:
            request = GetTeamRequest(cwd=where, name=name)
            _show((await client.catalog.GetTeam(request)).team, _put_team, as_json=as_json)
            return Exit.DONE
        found = [each async for each in list_teams(client, where, page_size=PAGE)]
        _list(found, ("TEAM", "SOURCE", "WORKFLOW", "ROLES", "WHAT"), _team_cells, as_json=as_json)
        return Exit.DONE

    return session.perform(work, start=True)


@click.command()
@catalog_options
@click.pass_obj
def workflows(session: Session, /, name: str | None, *, cwd: str | None, as_json: bool) -> int:
    """List the workflows there are, or show NAME with its steps."""
    where = directory(cwd)

    async def work(client: Client) -> int:
        if name is not None:
            request = GetWorkflowRequest(cwd=where, name=name)
            found = (await client.catalog.GetWorkflow(request)).workflow
            _show(found, _put_workflow, as_json=as_json)
            return Exit.DONE
        listed = [each async for each in list_workflows(client, where, page_size=PAGE)]
        _list(listed, ("WORKFLOW", "SOURCE", "STEPS", "WHAT"), _workflow_cells, as_json=as_json)
        return Exit.DONE

    return session.perform(work, start=True)


@click.command()
@catalog_options
@click.pass_obj
def skills(session: Session, /, name: str | None, *, cwd: str | None, as_json: bool) -> int:
    """List the skills there are, or show NAME with its text."""
    where = directory(cwd)

    async def work(client: Client) -> int:
        if name is not None:
            request = GetSkillRequest(cwd=where, name=name)
            _show((await client.catalog.GetSkill(request)).skill, _put_skill, as_json=as_json)
            return Exit.DONE
        found = [each async for each in list_skills(client, where, page_size=PAGE)]
        _list(found, ("SKILL", "SOURCE", "WHAT"), _skill_cells, as_json=as_json)
        return Exit.DONE

    return session.perform(work, start=True)


def directory(given: str | None) -> str:
    """Give the directory as an absolute path without symbolic links, as the daemon writes it."""
    return str(Path(given or ".").resolve())


def _list(
    found: Sequence[M],
    heads: Sequence[str],
    cells: Callable[[M], Sequence[str]],
    *,
    as_json: bool,
) -> None:
    if as_json:
        for each in found:
            put_json(to_json(each))
    elif found:
        put_table(heads, [cells(each) for each in found])
    else:
        note("none")


def _show(found: M, tell: Callable[[M], None], *, as_json: bool) -> None:
    if as_json:
        put_json(to_json(found))
    else:
        tell(found)


def _agent_cells(agent: Agent) -> list[str]:
    what = shorten(agent.description, _DESCRIPTION)
    return [agent.name, word(agent, "source"), agent.adapter, agent.model, what]


def _team_cells(team: Team) -> list[str]:
    what = shorten(team.description, _DESCRIPTION)
    return [team.name, word(team, "source"), team.workflow, str(len(team.roles)), what]


def _workflow_cells(workflow: Workflow) -> list[str]:
    what = shorten(workflow.description, _DESCRIPTION)
    return [workflow.name, word(workflow, "source"), str(len(workflow.steps)), what]


def _skill_cells(skill: Skill) -> list[str]:
    return [skill.name, word(skill, "source"), shorten(skill.description, _DESCRIPTION)]


def _put_head(found: Agent | Team | Workflow | Skill, **more: str) -> None:
    put(f"{found.name}  {shorten(found.description, 400)}")
    put(f"source:   {word(found, 'source')}, {found.file}")
    for name, value in more.items():
        if value:
            put(f"{f'{name}:':<9} {shorten(value, 400)}")


def _put_agent(agent: Agent) -> None:
    tools = "of its role" if agent.default_tools else ", ".join(agent.tools) or "none"
    _put_head(
        agent,
        adapter=agent.adapter,
        command=" ".join(agent.command),
        model=agent.model,
        thinking=agent.thinking,
        tools=tools,
        without=", ".join(agent.excluded_tools),
        skills=", ".join(agent.skills),
        changes="nothing" if agent.read_only else "",
    )
    _put_text(agent.system_prompt)


def _put_team(team: Team) -> None:
    _put_head(team, workflow=team.workflow, workers=str(team.max_concurrent_workers or ""))
    put()
    rows = [[r.name, r.agent, r.model, shorten(r.description, _DESCRIPTION)] for r in team.roles]
    put_table(("ROLE", "AGENT", "MODEL", "WHAT"), rows)


def _put_workflow(workflow: Workflow) -> None:
    _put_head(workflow, workers=str(workflow.max_concurrent_workers or ""))
    put()
    put_table(("STEP", "ROLE", "AFTER", "OUTPUT", "WHAT"), [_step_cells(s) for s in workflow.steps])


def _step_cells(step: WorkflowStep) -> list[str]:
    what = shorten(" ".join(step.command) or step.text, _DESCRIPTION)
    return [step.id, step.role, ",".join(step.depends_on), step.output, what]


def _put_skill(skill: Skill) -> None:
    _put_head(skill)
    _put_text(skill.text)


def _put_text(text: str) -> None:
    if text:
        put()
        put(clean_block(text))
