from __future__ import annotations

import pytest

from crewd.catalog import NamedTask, PlanRequest, RoleChange
from crewd.core.errors import CrewdError, Reason
from crewd.core.spec import Adapter, OutputSpec
from tests.catalog.places import Places

WORKFLOW = """\
---
name: w
maxConcurrency: 3
---
## plan
role: planner
output: plan.md

Plan: {goal}

## build
role: build
reads: plan.md, other.md
parallelGroup: make
model: step/model
skills: safe-bash, missing-one

Build {goal}.

## check
command: [make, test]
dependsOn: build
"""
TEAM = """\
---
name: t
workflow: w
maxConcurrency: 2
---
- planner: model=role/model
- build: agent=executor thinking=low skills=false
"""


def crew(places: Places) -> Places:
    places.workflow("w", WORKFLOW)
    places.team("t", TEAM)
    return places


def refusal(places: Places, request: PlanRequest) -> CrewdError:
    with pytest.raises(CrewdError) as caught:
        places.plan(request)
    return caught.value


def test_steps_become_tasks(places: Places) -> None:
    made = crew(places).plan(PlanRequest(goal=r"a $& \1 {goal} %s", team="t"))
    plan, build, check = made.tasks
    assert (made.team, made.workflow, made.max_concurrent_workers) == ("t", "w", 2)
    assert (plan.id, plan.role, plan.agent, plan.model) == (
        "plan",
        "planner",
        "planner",
        "role/model",
    )
    assert (plan.output, plan.read_only) == (OutputSpec(name="plan.md"), True)
    assert plan.prompt == r"Plan: a $& \1 {goal} %s"
    assert (build.depends_on, build.reads, build.phase) == (("plan",), ("plan.md",), "make")
    assert (build.agent, build.model, build.adapter) == ("executor", "step/model", Adapter.PI)
    assert (build.command, build.read_only) == (("pi",), False)
    assert (check.adapter, check.command, check.agent) == (Adapter.COMMAND, ("make", "test"), "")


def test_skills_come_from_role_agent_team_and_step_and_missing_ones_are_named(
    places: Places,
) -> None:
    made = crew(places).plan(PlanRequest(goal="g", team="t"))
    plan, build, _ = made.tasks
    assert plan.skills == ("delegation-patterns", "requirements-to-task-packet")
    assert (build.skills, build.skills_missing) == (("safe-bash",), ("missing-one",))
    assert set(made.skills) == {*plan.skills, *build.skills}


def test_one_task_s_skills_do_not_reach_the_next_task_of_its_role(places: Places) -> None:
    body = "## a\nrole: writer\nskills: safe-bash\n\n## b\nrole: writer\n\nx\n"
    places.workflow("w", f"---\nname: w\n---\n{body}")
    first, second = places.plan(PlanRequest(goal="g", workflow="w")).tasks
    assert set(first.skills) - set(second.skills) == {"safe-bash"}


def test_the_thinking_of_a_role_is_that_of_its_agent_in_the_run(places: Places) -> None:
    made = crew(places).plan(PlanRequest(goal="g", team="t"))
    assert made.agents["executor"].thinking == "low"
    assert made.agents["planner"].source == "builtin"


def test_a_run_may_change_agent_and_model_of_a_role(places: Places) -> None:
    places.user_agent("mason", "---\ndescription: d\nmodel: mason/model\n---\nLay bricks.")
    changes = {"build": RoleChange(agent="mason"), "planner": RoleChange(model="run/model")}
    made = crew(places).plan(PlanRequest(goal="g", team="t", role_overrides=changes))
    assert [task.model for task in made.tasks] == ["run/model", "step/model", ""]
    assert made.tasks[1].agent == "mason"
    assert made.agents["mason"].system_prompt == "Lay bricks."


def test_an_agent_in_two_parts_with_other_tools_is_there_for_each(places: Places) -> None:
    places.user_agent("all", "---\ndescription: d\ntools: read, edit, bash\n---\nx")
    places.team("t", "---\nname: t\nworkflow: w\n---\n- explorer: agent=all\n- free: agent=all\n")
    places.workflow("w", "---\nname: w\n---\n## a\nrole: explorer\n\nx\n\n## b\nrole: free\n\nx\n")
    made = places.plan(PlanRequest(goal="g", team="t"))
    first, second = (made.agents[task.agent] for task in made.tasks)
    assert (first.name, first.tools, first.read_only) == ("all", ("read", "bash"), True)
    assert (second.name, second.tools, second.read_only) == ("all", ("read", "edit", "bash"), False)


def test_an_agent_alone_does_the_goal_as_one_task(places: Places) -> None:
    places.user_agent("Big.One", "---\ndescription: d\nenvFrom: KEY\nskills: safe-bash\n---\nx")
    [task] = places.plan(PlanRequest(goal="do it", agent="Big.One")).tasks
    assert (task.id, task.prompt, task.agent) == ("big-one", "do it", "Big.One")
    assert (task.env_from, task.skills) == (("KEY",), ("safe-bash",))


def test_tasks_written_out_get_what_the_catalog_knows_of_their_agents(places: Places) -> None:
    text = "---\ndescription: d\nadapter: jsonl\ncommand: ./agent --fast\n---\nx"
    places.user_agent("fast", text)
    tasks = (NamedTask(id="a", agent="fast", skills=("safe-bash",)), NamedTask(id="b"))
    made = places.plan(PlanRequest(tasks=tasks))
    first, second = made.tasks
    assert (first.agent, first.adapter, first.command) == (
        "fast",
        Adapter.JSONL,
        ("./agent", "--fast"),
    )
    assert first.skills == ("safe-bash",)
    assert (second.agent, second.adapter, second.command) == ("", Adapter.COMMAND, ())


def test_an_unknown_agent_is_refused_with_the_nearest_and_the_places(places: Places) -> None:
    error = refusal(places, PlanRequest(agent="plannre"))
    assert error.reason is Reason.AGENT_NOT_FOUND
    assert error.metadata == {"agent": "plannre"}
    assert "there is no agent 'plannre'; did you mean 'planner'?" in error.message
    assert str(places.project / ".crew" / "agents") in error.message
    in_tasks = refusal(places, PlanRequest(tasks=(NamedTask(id="a", agent="x"),)))
    assert in_tasks.violations[0].field == "tasks[0].agent"


def test_an_agent_whose_file_cannot_be_used_is_refused_with_the_reason(places: Places) -> None:
    file = places.agent("mine", "---\nmaxTurns: many\n---\n")
    error = refusal(places, PlanRequest(agent="mine"))
    assert f"{file}:2 cannot be used: max_turns: a whole number" in error.message


@pytest.mark.parametrize(
    ("field", "request_"),
    [
        ("team", PlanRequest(team="defualt")),
        ("workflow", PlanRequest(workflow="defualt")),
        ("workflow", PlanRequest(team="research", workflow="default")),
        (
            "role_overrides.exekutor",
            PlanRequest(team="default", role_overrides={"exekutor": RoleChange(model="x/y")}),
        ),
    ],
)
def test_other_names_that_lead_nowhere_are_refused_by_field(
    places: Places, field: str, request_: PlanRequest
) -> None:
    error = refusal(places, request_)
    assert error.reason is Reason.SPEC_INVALID
    assert [violation.field for violation in error.violations] == [field]


def test_what_a_project_would_start_is_named_and_what_a_user_would_is_not(places: Places) -> None:
    mine = "---\ndescription: d\nadapter: jsonl\ncommand: make\nenvFrom: KEY\n---\n"
    file = places.agent("theirs", mine)
    places.user_agent("mine", mine)
    step = "## a\nrole: theirs\n\n## b\nrole: mine\n\n## c\nrole: writer\n\n## d\ncommand: ls -l\n"
    flow = places.workflow("w", f"---\nname: w\n---\n{step}")
    made = places.plan(PlanRequest(goal="g", workflow="w"))
    assert [(each.file, each.line, each.what) for each in made.untrusted] == [
        (str(file), 1, "agent theirs starts make"),
        (str(file), 1, "agent theirs is given KEY"),
        (str(flow), 13, "step d starts ls -l"),
    ]


def test_a_broken_file_that_would_have_replaced_something_is_told(places: Places) -> None:
    file = places.user_agent("planner", "---\nmaxTurns: many\n---\n")
    places.user_agent("writer", "---\nmaxTurns: many\n---\n")
    made = places.plan(PlanRequest(goal="g", team="default"))
    assert made.agents["planner"].source == "builtin"
    assert [(p.file, p.line) for p in made.problems] == [(str(file), 2)]
