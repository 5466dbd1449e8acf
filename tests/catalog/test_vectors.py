"""The cases taken from upstream. `decision` names crewd's own rule where it decides differently."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, cast

import pytest

from crewd.catalog import (
    Agent,
    Catalog,
    PlanRequest,
    Problem,
    Role,
    Severity,
    Source,
    Step,
    Team,
    Workflow,
    plan,
)
from crewd.catalog import agents as agent_files
from crewd.catalog import skills as skill_files
from crewd.catalog import teams as team_files
from crewd.catalog import workflows as workflow_files
from crewd.catalog.fields import is_skill_name, words_of
from crewd.catalog.files import Found, Place
from crewd.catalog.findings import Findings
from crewd.catalog.frontmatter import read
from crewd.catalog.nodes import Items, Node, Scalar
from crewd.catalog.tools import is_read_only, role_policy, tool_policy
from crewd.catalog.workflows import without_role

Case = Mapping[str, Any]
CASES: Final[list[Case]] = json.loads(
    (Path(__file__).parents[1] / "data" / "vectors" / "catalog.json").read_text()
)
SOURCES: Final = {
    "user": Source.USER,
    "builtin": Source.BUILTIN,
    "project": Source.PROJECT,
    "project-pi": Source.PROJECT,
}


def found(name: str, text: str, source: str = "user") -> Found:
    place = Place(Path("/p"), SOURCES[source], Path("/p"), foreign=source == "project-pi")
    return Found(Path("/p") / name, place, text)


def told(problems: list[Problem]) -> dict[str, Any]:
    """Give how bad the problems are; nothing when there are none."""
    severities = {problem.severity.value for problem in problems}
    return {"problems": sorted(severities)} if severities else {}


def plain(node: Node) -> object:
    if isinstance(node, Scalar):
        return "" if node.is_null else node.text
    return [plain(item) for item in node.items] if isinstance(node, Items) else {}


def frontmatter(given: str) -> Case:
    findings = Findings("f")
    document = read(given, findings)
    entries = document.head.entries if document.head else []
    head = {key.text: plain(value) for key, value in entries}
    return {"frontmatter": head, "body": document.body, **told(findings.problems)}


def csv(given: str | None) -> object:
    return list(words_of(given or "")) or None


def agent_tools_field(given: str | None) -> object:
    line = "" if given is None else f"tools: {given!r}\n"
    agent, _ = agent_files.parse(found("a.md", f"---\nname: a\n{line}---\n"))
    assert agent is not None
    return None if agent.tools is None else list(agent.tools)


def agent_file(given: Case) -> Case:
    agent, problems = agent_files.parse(found("f1.md", given["text"], given["source"]))
    if agent is None:
        return {"disabled": True, **told(problems)}
    shown = {
        "name": agent.name,
        "description": agent.description,
        "disabled": False,
        "inheritProjectContext": agent.project_context,
        "source": agent.source.value,
        "systemPrompt": agent.system_prompt,
        "systemPromptMode": "append" if agent.append_system_prompt else "replace",
        "tools": None if agent.tools is None else list(agent.tools),
        "skills": list(agent.skills),
        "excludeTools": list(agent.excluded_tools),
    }
    return {**shown, **told(problems)}


def team_role_line(given: str) -> object:
    findings = Findings("t")
    role = team_files.role_line(given, 1, findings)
    if role is None:
        return told(findings.problems) or None
    shown = {"name": role.name, "agent": role.agent, "description": role.description}
    shown |= {"model": role.model, "thinking": role.thinking}
    skills = list(role.skills) if role.default_skills else False
    return {**{k: v for k, v in shown.items() if v}, "skills": skills, **told(findings.problems)}


def team_file(given: Case) -> Case:
    team, problems = team_files.parse(found("t.team.md", given["text"], given["source"]))
    if team is None:
        return told(problems)
    roles = [{"agent": role.agent, "name": role.name} for role in team.roles]
    return {
        "name": team.name,
        "description": team.description,
        "source": team.source.value,
        "roles": roles,
        "maxConcurrency": team.max_concurrent_workers,
        **told(problems),
    }


def workflow_file(given: Case) -> Case:
    found_file = found("w.workflow.md", given["text"], given["source"])
    workflow, problems = workflow_files.parse(found_file)
    if workflow is None:
        return told(problems)
    steps = [_step(step) for step in workflow.steps]
    shown = {"name": workflow.name, "description": workflow.description, "steps": steps}
    return {**shown, "source": workflow.source.value, **told(problems)}


def _step(step: Step) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": step.id, "role": step.role, "task": step.text}
    shown |= {"output": step.output}
    shown |= {"dependsOn": list(step.depends_on), "verify": step.verify}
    return {name: value for name, value in shown.items() if value}


def workflow_validate(given: Case) -> list[Case]:
    text = "".join(f"## {step['id']}\n{_keys(step)}\nDo it.\n\n" for step in given["steps"])
    workflow, problems = workflow_files.parse(found("w.workflow.md", f"---\nname: w\n---\n{text}"))
    missing = without_role(workflow, given["teamRoles"]) if workflow else []
    roles = [{"code": "unknown_role", "role": step.role, "step": step.id} for step in missing]
    return [*roles, *({"message": problem.message} for problem in problems)]


def _keys(step: Case) -> str:
    return "".join(f"{key}: {json.dumps(step[key])}\n" for key in step if key != "id")


def role_permission(given: str) -> str:
    agent = Agent(name="a", source=Source.USER, file="a")
    return "read_only" if is_read_only(agent, given) else "workspace_write"


def role_tools(given: str) -> Case:
    return _policy(role_policy(given))


def policy_of(given: Case) -> Case:
    fields = given["agent"]
    agent = Agent(
        name="a",
        file="a",
        source=SOURCES[fields["source"]],
        tools=tuple(fields["tools"]) if "tools" in fields else None,
        excluded_tools=tuple(fields.get("disallowedTools", ())),
    )
    return _policy(tool_policy(agent, given["role"] or ""))


def _policy(policy: Any) -> Case:  # noqa: ANN401 - as both functions give it
    shown: dict[str, Any] = {}
    if policy.tools is not None:
        shown["tools"] = list(policy.tools)
    if policy.excluded:
        shown["excludeTools"] = list(policy.excluded)
    return shown


def skill_frontmatter(given: Case) -> Case:
    path = f"{given['directory']}/SKILL.md"
    skill, problems = skill_files.parse(found(path, given["text"]))
    words = {Severity.ERROR: "error", Severity.WARNING: "warn"}
    errors = sorted(words[problem.severity] for problem in problems)
    if skill is None:
        return {"ok": False, "errors": errors}
    manifest = {"name": skill.name, "description": skill.description}
    return {"ok": True, "errors": errors, "manifest": manifest}


def shared_name(given: str) -> str:
    text = f"---\nname: w\n---\n## s\nrole: a\noutput: {json.dumps(given)}\n"
    workflow, _ = workflow_files.parse(found("w.workflow.md", text))
    return workflow.steps[0].output if workflow else "refused"


def skill_override(given: object) -> object:
    """Give the skills named; None for the role's own, false for none at all."""
    skills = "" if given is None else f"skills: {str(given).lower()}\n"
    text = f"---\nname: w\n---\n## s\nrole: a\n{skills}"
    workflow, _ = workflow_files.parse(found("w.workflow.md", text))
    assert workflow is not None
    [step] = workflow.steps
    return (list(step.skills) or None) if step.default_skills else False


def skill_selection(given: Case) -> object:
    if "agentSkills" in given:
        first = _skills_of(given["role"])
        assert _skills_of(given["role"], given["agentSkills"]) == [*first, *given["agentSkills"]]
        return {"before": first, "after": _skills_of(given["role"])}
    default = given.get("teamRole", {}).get("skills", True)
    return _skills_of(given["role"], given.get("agent", {}).get("skills", ()), default=default)


def _skills_of(role: str, skills: Iterable[str] = (), *, default: bool = True) -> list[str]:
    agent = Agent(name="a", source=Source.USER, file="a", skills=tuple(skills))
    part = Role(name=role, agent="a", default_skills=default)
    team = Team(name="t", source=Source.USER, file="t", workflow="w", roles=(part,))
    steps = (Step(id="s", role=role),)
    workflow = Workflow(name="w", source=Source.USER, file="w", steps=steps)
    catalog = Catalog(agents={"a": agent}, teams={"t": team}, workflows={"w": workflow})
    [task] = plan(catalog, PlanRequest(goal="g", team="t")).tasks
    return list(task.skills_missing)


AREAS: Final[Mapping[str, Callable[[Any], object]]] = {
    "frontmatter": frontmatter,
    "csv": csv,
    "agent_tools_field": agent_tools_field,
    "agent_file": agent_file,
    "team_role_line": team_role_line,
    "team_file": team_file,
    "workflow_file": workflow_file,
    "workflow_validate": workflow_validate,
    "role_permission": role_permission,
    "role_tools": role_tools,
    "tool_policy": policy_of,
    "shared_name": shared_name,
    "skill_name": is_skill_name,
    "skill_override": skill_override,
    "skill_selection": skill_selection,
    "skill_role_defaults": lambda role: list(skill_files.role_defaults(role)),
    "skill_frontmatter": skill_frontmatter,
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['area']}: {case['case']}")
def test_a_case_comes_out_as_expected(case: Case) -> None:
    result = AREAS[case["area"]](case["input"])
    expected = cast("dict[str, Any] | list[Any] | str | None", case["expect"])
    if isinstance(expected, dict) and isinstance(result, dict):
        given = cast("dict[str, Any]", result)
        result = {key: given.get(key) for key in expected}
    assert result == expected


def test_every_area_has_cases_and_every_deviation_says_why() -> None:
    assert {case["area"] for case in CASES} == set(AREAS)
    for case in CASES:
        assert ("decision" in case) is ("upstream_expect" in case)
        assert case.get("decision", "A.").endswith(".")
