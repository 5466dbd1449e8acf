# ruff: noqa: N802  # the methods are named as in the contract
from __future__ import annotations

import json
import stat
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest

from crewd_client import Client, list_agents
from crewd_client.v1 import catalog_pb2 as catalog
from crewd_client.v1 import catalog_service_pb2 as pb
from tests.clients.support.crew import crew
from tests.clients.support.fake_daemon import FakeDaemon
from tests.clients.support.wire import RefusedError

AGENT = catalog.Agent(
    name="mine",
    description="Ours \x1b[31m",
    source=catalog.CATALOG_SOURCE_PROJECT,
    file="/p/.crew/agents/mine.md",
    adapter="pi",
    tools=["read", "ls"],
    read_only=True,
    system_prompt="Do it\nour way.",
)
ROLES = [
    catalog.TeamRole(name="planner", agent="planner", description="Plans"),
    catalog.TeamRole(name="build", agent="mine", model="x/y"),
]
STEPS = [
    catalog.WorkflowStep(id="plan", role="planner", output="plan.md", text="Plan {goal}"),
    catalog.WorkflowStep(id="test", depends_on=["plan"], command=["make", "test"]),
]


@dataclass
class CatalogDaemon(FakeDaemon):
    """Knows two agents, and one of each other kind."""

    problems: list[catalog.CatalogProblem] = field(default_factory=list[catalog.CatalogProblem])

    def ListAgents(self, request: pb.ListAgentsRequest) -> pb.ListAgentsResponse:
        if request.page_token:
            return pb.ListAgentsResponse(agents=[catalog.Agent(name="other", adapter="jsonl")])
        return pb.ListAgentsResponse(agents=[AGENT], next_page_token="2")  # noqa: S106

    def GetAgent(self, request: pb.GetAgentRequest) -> pb.GetAgentResponse:
        if request.name != AGENT.name:
            raise RefusedError(grpc.StatusCode.NOT_FOUND, "AGENT_NOT_FOUND", "there is no agent")
        return pb.GetAgentResponse(agent=AGENT)

    def ListTeams(self, _: pb.ListTeamsRequest) -> pb.ListTeamsResponse:
        return pb.ListTeamsResponse(teams=[catalog.Team(name="t", workflow="w", roles=ROLES)])

    def GetTeam(self, _: pb.GetTeamRequest) -> pb.GetTeamResponse:
        return pb.GetTeamResponse(team=catalog.Team(name="t", workflow="w", roles=ROLES))

    def ListWorkflows(self, _: pb.ListWorkflowsRequest) -> pb.ListWorkflowsResponse:
        return pb.ListWorkflowsResponse(workflows=[catalog.Workflow(name="w", steps=STEPS)])

    def GetWorkflow(self, _: pb.GetWorkflowRequest) -> pb.GetWorkflowResponse:
        return pb.GetWorkflowResponse(workflow=catalog.Workflow(name="w", steps=STEPS))

    def ListSkills(self, _: pb.ListSkillsRequest) -> pb.ListSkillsResponse:
        return pb.ListSkillsResponse()

    def GetSkill(self, _: pb.GetSkillRequest) -> pb.GetSkillResponse:
        return pb.GetSkillResponse(skill=catalog.Skill(name="s", text="Be kind."))

    def ValidateCatalog(self, request: pb.ValidateCatalogRequest) -> pb.ValidateCatalogResponse:
        return pb.ValidateCatalogResponse(problems=self.problems, project_root=request.cwd)


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[CatalogDaemon]:
    async with CatalogDaemon(tmp_path / "state") as fake:
        yield fake


def a_problem(severity: catalog.CatalogSeverity.ValueType) -> catalog.CatalogProblem:
    return catalog.CatalogProblem(
        file="/p/a.md", line=3, severity=severity, message="unknown key 'modle'", fix="see it"
    )


async def test_agents_are_listed_with_all_pages(daemon: CatalogDaemon) -> None:
    done = await crew(daemon, "agents", "--cwd", "sub/..")
    assert done.code == 0
    heads, first, second = done.out.splitlines()
    assert heads.split() == ["AGENT", "SOURCE", "ADAPTER", "MODEL", "WHAT"]
    assert first.split() == ["mine", "project", "pi", "Ours"]
    assert second.split() == ["other", "unspecified", "jsonl"]
    assert daemon.requests("ListAgents")[0].cwd == str(daemon.state_dir)


async def test_without_a_directory_it_is_the_current_one(
    daemon: CatalogDaemon, tmp_path: Path
) -> None:
    await crew(daemon, "teams", cwd=tmp_path)
    assert daemon.requests("ListTeams")[0].cwd == str(tmp_path)


async def test_json_gives_one_thing_a_line(daemon: CatalogDaemon) -> None:
    listed = await crew(daemon, "agents", "--json")
    shown = await crew(daemon, "agents", "mine", "--json")
    assert [json.loads(line)["name"] for line in listed.out.splitlines()] == ["mine", "other"]
    assert json.loads(shown.out)["system_prompt"] == "Do it\nour way."
    assert json.loads(shown.out)["source"] == "project"


async def test_an_agent_is_shown_with_its_instructions(daemon: CatalogDaemon) -> None:
    done = await crew(daemon, "agents", "mine")
    assert done.out == (
        "mine  Ours\n"
        "source:   project, /p/.crew/agents/mine.md\n"
        "adapter:  pi\n"
        "tools:    read, ls\n"
        "changes:  nothing\n"
        "\n"
        "Do it\nour way.\n"
    )


async def test_teams_and_workflows_are_shown_with_their_parts(daemon: CatalogDaemon) -> None:
    team = await crew(daemon, "teams", "t")
    flow = await crew(daemon, "workflows", "w")
    assert [line.split() for line in team.out.splitlines()[-2:]] == [
        ["planner", "planner", "Plans"],
        ["build", "mine", "x/y"],
    ]
    assert [line.split() for line in flow.out.splitlines()[-2:]] == [
        ["plan", "planner", "plan.md", "Plan", "{goal}"],
        ["test", "plan", "make", "test"],
    ]


async def test_lists_count_parts_and_say_when_there_are_none(daemon: CatalogDaemon) -> None:
    flows = await crew(daemon, "workflows")
    skills = await crew(daemon, "skills")
    skill = await crew(daemon, "skills", "s")
    assert flows.out.splitlines()[1].split() == ["w", "unspecified", "2"]
    assert (skills.code, skills.out, skills.err) == (0, "", "none\n")
    assert skill.out.endswith("\nBe kind.\n")


async def test_a_name_that_leads_nowhere_is_refused(daemon: CatalogDaemon) -> None:
    done = await crew(daemon, "agents", "nobody")
    assert done.code == 6
    assert done.err == "error: there is no agent\nhint: see `crew agents`\n"


@pytest.mark.parametrize("kind", ["team", "workflow", "skill"])
async def test_what_there_is_of_its_kind_is_where_to_look(daemon: CatalogDaemon, kind: str) -> None:
    told = f"{kind}: there is no {kind} 'x' (looked in /p)"
    refused = RefusedError(grpc.StatusCode.INVALID_ARGUMENT, "SPEC_INVALID", told)
    daemon.refusals["CreateRun"] = [refused]
    daemon.refusals[f"Get{kind.title()}"] = [refused]
    shown = await crew(daemon, f"{kind}s", "x")
    run = await crew(daemon, "run", "go", "--team", "x")
    assert shown.err == run.err == f"error: {told}\nhint: see `crew {kind}s`\n"


@pytest.mark.parametrize("command", ["agents", "teams", "workflows", "skills", "validate"])
async def test_the_daemon_is_started_to_tell_what_there_is(
    daemon: CatalogDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    await daemon.stop()
    # A command beside a `crewd` that cannot start, as an installation has it.
    program = tmp_path / "crewd"
    program.write_text("#!/bin/sh\necho no luck with $1 >&2\nexit 5\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    script = tmp_path / "crew"
    script.write_text("from crewd_client.cli import main; main()")
    monkeypatch.setattr("tests.clients.support.crew.COMMAND", [sys.executable, str(script)])
    done = await crew(daemon, command)
    assert (done.code, done.err) == (5, "error: no luck with ensure\n")


@pytest.mark.parametrize(
    ("severities", "code", "said"),
    [
        ((), 0, "nothing is wrong"),
        ((catalog.CATALOG_SEVERITY_WARNING,), 0, "0 errors, 1 warning"),
        ((catalog.CATALOG_SEVERITY_WARNING, catalog.CATALOG_SEVERITY_ERROR), 2, "1 error, 1 warn"),
    ],
)
async def test_validate_ends_with_2_when_a_file_cannot_be_used(
    daemon: CatalogDaemon,
    severities: tuple[catalog.CatalogSeverity.ValueType, ...],
    code: int,
    said: str,
) -> None:
    daemon.problems = [a_problem(severity) for severity in severities]
    done = await crew(daemon, "validate", str(daemon.state_dir))
    assert done.code == code
    assert said in done.err
    assert len(done.out.splitlines()) == len(severities)


async def test_validate_tells_place_problem_and_way_out_in_a_line(daemon: CatalogDaemon) -> None:
    daemon.problems = [a_problem(catalog.CATALOG_SEVERITY_ERROR)]
    plain = await crew(daemon, "validate")
    as_json = await crew(daemon, "validate", "--json")
    assert plain.out == "/p/a.md:3: error: unknown key 'modle'; see it\n"
    assert json.loads(as_json.out)["severity"] == "error"
    assert (as_json.code, as_json.err) == (2, "")


async def test_the_client_reads_the_catalog(daemon: CatalogDaemon) -> None:
    async with await Client.connect(state_dir=daemon.state_dir, env={}) as client:
        found = [agent.name async for agent in list_agents(client, "/p")]
    assert found == ["mine", "other"]
