from __future__ import annotations

from pathlib import Path

import grpc
import pytest

from crewd.catalog import trust
from crewd.v1 import catalog_pb2
from crewd.v1 import catalog_service_pb2 as pb
from tests.rpc.world import AUTH, World, refused

AGENT = "---\nname: mine\ndescription: Ours\ntools: read\n---\nDo it our way.\n"


@pytest.fixture(autouse=True)
def no_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path / "project" / ".crew" / "agents" / "mine.md", AGENT)
    (tmp_path / "project" / "deep").mkdir()
    return tmp_path / "project"


async def agents(world: World, cwd: Path | None = None) -> dict[str, catalog_pb2.Agent]:
    request = pb.ListAgentsRequest(cwd=str(cwd or ""))
    listed = await world.catalog.ListAgents(request, metadata=AUTH)
    return {agent.name: agent for agent in listed.agents}


async def test_a_project_s_agents_are_there_below_it_and_only_there(
    world: World, project: Path
) -> None:
    mine = (await agents(world, project / "deep"))["mine"]
    assert mine.source == catalog_pb2.CATALOG_SOURCE_PROJECT
    assert (mine.description, list(mine.tools), mine.default_tools) == ("Ours", ["read"], False)
    assert mine.system_prompt == ""
    assert "mine" not in await agents(world)


async def test_the_user_s_files_are_those_of_the_daemon_s_configuration(world: World) -> None:
    write(world.wiring.config_dir / "agents" / "mine.md", AGENT)
    assert (await agents(world))["mine"].source == catalog_pb2.CATALOG_SOURCE_USER


async def test_a_change_of_a_file_is_seen_at_once(world: World, project: Path) -> None:
    await agents(world, project)
    write(project / ".crew" / "agents" / "mine.md", AGENT.replace("Ours", "Changed"))
    assert (await agents(world, project))["mine"].description == "Changed"


async def test_one_thing_is_read_with_its_texts(world: World, project: Path) -> None:
    where, catalog = str(project), world.catalog
    agent = await catalog.GetAgent(pb.GetAgentRequest(cwd=where, name="mine"), metadata=AUTH)
    team = await catalog.GetTeam(pb.GetTeamRequest(name="default"), metadata=AUTH)
    flow = await catalog.GetWorkflow(pb.GetWorkflowRequest(name="default"), metadata=AUTH)
    skill = await catalog.GetSkill(pb.GetSkillRequest(name="safe-bash"), metadata=AUTH)
    assert agent.agent.system_prompt == "Do it our way."
    assert [role.agent for role in team.team.roles][:2] == ["explorer", "planner"]
    assert [step.id for step in flow.workflow.steps] == ["explore", "plan", "execute", "verify"]
    assert "{goal}" in flow.workflow.steps[0].text
    assert flow.workflow.steps[-1].verify
    assert "Quote every variable" in skill.skill.text
    assert skill.skill.folder == ""


async def test_lists_come_in_pages_by_name_without_long_texts(world: World) -> None:
    names: list[str] = []
    request = pb.ListWorkflowsRequest(page_size=3)
    while not names or request.page_token:
        page = await world.catalog.ListWorkflows(request, metadata=AUTH)
        assert len(page.workflows) <= 3
        assert not any(step.text for flow in page.workflows for step in flow.steps)
        names += [flow.name for flow in page.workflows]
        request.page_token = page.next_page_token
    assert len(names) == 9
    assert names == sorted(names)
    teams = await world.catalog.ListTeams(pb.ListTeamsRequest(), metadata=AUTH)
    skills = await world.catalog.ListSkills(pb.ListSkillsRequest(), metadata=AUTH)
    assert (len(teams.teams), len(skills.skills)) == (6, 11)
    assert not any(skill.text for skill in skills.skills)


async def test_a_page_token_of_another_list_is_refused(world: World) -> None:
    page = await world.catalog.ListAgents(pb.ListAgentsRequest(page_size=1), metadata=AUTH)
    other = pb.ListTeamsRequest(page_token=page.next_page_token)
    error = await refused(world.catalog.ListTeams(other, metadata=AUTH))
    assert error.reason == "PAGE_TOKEN_INVALID"


async def test_names_that_lead_nowhere_are_refused_with_the_nearest(world: World) -> None:
    catalog = world.catalog
    agent = await refused(catalog.GetAgent(pb.GetAgentRequest(name="plannre"), metadata=AUTH))
    team = await refused(catalog.GetTeam(pb.GetTeamRequest(name="defualt"), metadata=AUTH))
    none = await refused(catalog.GetSkill(pb.GetSkillRequest(), metadata=AUTH))
    assert (agent.code, agent.reason) == (grpc.StatusCode.NOT_FOUND, "AGENT_NOT_FOUND")
    assert agent.metadata == {"agent": "plannre"}
    assert (team.reason, team.fields) == ("SPEC_INVALID", ["team"])
    assert (none.reason, none.fields) == ("SPEC_INVALID", ["name"])


@pytest.mark.parametrize("cwd", ["relative", "/nowhere/at/all", "/dev/null", "/a\0b"])
async def test_a_directory_that_is_none_is_refused(world: World, cwd: str) -> None:
    error = await refused(world.catalog.ListAgents(pb.ListAgentsRequest(cwd=cwd), metadata=AUTH))
    assert (error.reason, error.fields) == ("CWD_INVALID", ["cwd"])


async def test_validation_tells_every_problem_with_its_place(world: World, project: Path) -> None:
    file = write(project / ".crew" / "agents" / "bad.md", "---\nmaxTurns: many\ncolr: red\n---\n")
    request = pb.ValidateCatalogRequest(cwd=str(project / "deep"))
    found = await world.catalog.ValidateCatalog(request, metadata=AUTH)
    assert (found.project_root, found.omitted) == (str(project), 0)
    assert [(p.file, p.line, p.severity) for p in found.problems] == [
        (str(file), 2, catalog_pb2.CATALOG_SEVERITY_ERROR),
        (str(file), 3, catalog_pb2.CATALOG_SEVERITY_WARNING),
    ]
    assert found.problems[0].message.startswith("max_turns: a whole number")


async def test_what_needs_the_project_to_be_trusted_is_told_until_it_is(
    world: World, project: Path
) -> None:
    root = project / "of my own"
    head = "---\nadapter: jsonl\ncommand: ./agent --fast\nenvFrom: ACME_KEY\ndescription: d\n---\n"
    file = write(root / ".crew" / "agents" / "own.md", head)
    flow = "---\nname: w\n---\n## lint\ncommand: make lint\n\n## look\nrole: explorer\n"
    steps = write(root / ".crew" / "workflows" / "w.workflow.md", flow)
    request = pb.ValidateCatalogRequest(cwd=str(root))
    found = (await world.catalog.ValidateCatalog(request, metadata=AUTH)).problems
    assert [(p.file, p.line, p.message.partition(", and ")[0]) for p in found] == [
        (str(file), 1, "agent own starts ./agent --fast"),
        (str(file), 1, "agent own is given ACME_KEY"),
        (str(steps), 4, "step lint starts make lint"),
    ]
    assert {p.severity for p in found} == {catalog_pb2.CATALOG_SEVERITY_WARNING}
    assert {p.fix for p in found} == {f"read its .crew folder, then: crewd trust '{root}'"}
    trust(world.wiring.config_dir, root)
    assert not (await world.catalog.ValidateCatalog(request, metadata=AUTH)).problems


async def test_more_problems_than_a_response_has_room_for_are_counted(
    world: World, project: Path
) -> None:
    for number in range(300):
        text = "---\n" + "".join(f"k{n}: v\n" for n in range(5)) + "---\n"
        write(project / ".crew" / "agents" / f"a{number}.md", text)
    request = pb.ValidateCatalogRequest(cwd=str(project))
    found = await world.catalog.ValidateCatalog(request, metadata=AUTH)
    assert (len(found.problems), found.omitted) == (1000, 500)
