"""What comes with crewd works as it is.

Of the workflows that upstream has two are not among it: `strict-fast-fix` holds its steps to
specs, and `chain` makes its steps while it runs. crewd has neither specs nor such plans.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from crewd.catalog import Catalog, PlanRequest, load, plan
from crewd.catalog.load import BUILTIN
from crewd.catalog.skills import role_defaults
from crewd.catalog.tools import READ_ONLY_ROLES
from crewd.core.graph import check
from crewd.core.spec import Adapter

NOWHERE = Path("/nowhere")
CATALOG: Catalog = load(None, NOWHERE, NOWHERE)
TEAMS = ("default", "fast-fix", "implementation", "parallel-research", "research", "review")
WORKFLOWS = (*TEAMS, "distill", "pipeline", "plan-execute")


def test_nothing_is_wrong_with_it() -> None:
    assert CATALOG.problems == ()
    assert set(CATALOG.teams) == set(TEAMS)
    assert set(CATALOG.workflows) == set(WORKFLOWS)
    assert len(list(BUILTIN.rglob("*.md"))) == sum(
        map(len, (CATALOG.agents, CATALOG.teams, CATALOG.workflows, CATALOG.skills))
    )


@pytest.mark.parametrize("team", TEAMS)
def test_each_team_can_carry_out_its_workflow(team: str) -> None:
    made = plan(CATALOG, PlanRequest(goal="the goal", team=team))
    check(made.tasks)
    assert made.workflow == team
    assert made.untrusted == ()
    for task in made.tasks:
        assert (task.adapter, task.command) == (Adapter.PI, ("pi",))
        assert task.agent in made.agents
        assert "the goal" in task.prompt
        assert task.skills
        assert task.skills_missing == ()


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_each_workflow_works_without_a_team(workflow: str) -> None:
    check(plan(CATALOG, PlanRequest(goal="g", workflow=workflow)).tasks)


def test_the_implementation_team_can_distill_to_a_better_target_and_to_a_skill() -> None:
    tasks = plan(CATALOG, PlanRequest(goal="g", team="implementation", workflow="distill")).tasks
    needs = {task.id: task.depends_on for task in tasks}
    researchers = tuple(f"research-{number}" for number in range(1, 7))
    assert {needs[name] for name in researchers} == {("route",)}
    assert needs["merge"][:6] == researchers
    steps = {step.id: step for step in CATALOG.workflows["distill"].steps}
    ends = steps.keys() - {name for names in needs.values() for name in names}
    assert ends == {"verify-target", "verify-skill"} == {s.id for s in steps.values() if s.verify}
    assert "prune" in needs["select"]
    assert "prune" in needs["build"]


@pytest.mark.parametrize("agent", sorted(CATALOG.agents))
def test_each_agent_works_alone_and_reads_only_if_its_role_does(agent: str) -> None:
    made = plan(CATALOG, PlanRequest(goal="g", agent=agent))
    [task] = made.tasks
    spec = made.agents[agent]
    assert task.id == agent
    assert task.skills == role_defaults(agent)
    assert task.read_only is (agent in READ_ONLY_ROLES)
    assert spec.tools is not None
    assert not (task.read_only and {"edit", "write"} & set(spec.tools))
    assert "ask" in spec.tools
    assert 500 < len(spec.system_prompt) < 3000


@pytest.mark.parametrize("skill", sorted(CATALOG.skills))
def test_each_skill_is_short_enough_to_be_given_whole(skill: str) -> None:
    assert len(CATALOG.skills[skill].text) < 1400


def test_explorers_of_the_areas_know_what_the_areas_are() -> None:
    tasks = plan(CATALOG, PlanRequest(goal="g", team="parallel-research")).tasks
    explorers = [task for task in tasks if task.phase == "explore"]
    assert len(explorers) == 4
    assert all(t.depends_on == ("discover",) and t.reads == ("areas.md",) for t in explorers)


def test_no_text_names_a_tool_of_one_ecosystem_as_if_all_had_it() -> None:
    for workflow in CATALOG.workflows.values():
        for step in workflow.steps:
            assert not any(word in step.text for word in ("npm ", "pytest", "make test", "cargo "))
