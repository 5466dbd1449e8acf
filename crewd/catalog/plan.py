"""A request turned into tasks, and the agents and skills that they are done with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from crewd.catalog import distrust
from crewd.catalog.agents import PROMPT
from crewd.catalog.fields import unique
from crewd.catalog.find import Finder, refused
from crewd.catalog.skills import role_defaults
from crewd.catalog.tools import is_read_only, tool_policy
from crewd.catalog.values import (
    Agent,
    Catalog,
    Plan,
    PlanRequest,
    Role,
    RoleChange,
    Source,
    Step,
    Team,
    Untrusted,
    Workflow,
)
from crewd.catalog.workflows import needed, outputs_of, without_role
from crewd.core.spec import Adapter, AgentSpec, OutputSpec, SkillSpec, TaskSpec

DEFAULT: Final = "default"
_GOAL: Final = "{goal}"
_TASK_CHARACTERS: Final = 64
_NO_CHANGE: Final = RoleChange()


def plan(catalog: Catalog, request: PlanRequest) -> Plan:
    """Return the tasks. AGENT_NOT_FOUND or SPEC_INVALID for names that lead nowhere."""
    planner = _Planner(catalog, request)
    if request.team or request.workflow:
        return planner.of_workflow()
    if request.agent:
        return planner.of_agent()
    return planner.of_tasks()


@dataclass(slots=True)
class _Crew:
    """The agents and skills of the tasks planned so far."""

    catalog: Catalog
    agents: dict[str, AgentSpec] = field(default_factory=dict[str, AgentSpec])
    skills: dict[str, SkillSpec] = field(default_factory=dict[str, SkillSpec])
    untrusted: dict[Untrusted, None] = field(default_factory=dict[Untrusted, None])

    def take(self, agent: Agent, role: Role) -> str:
        """Freeze the agent as it is in this role; return the name it has in the run."""
        self.untrusted.update(dict.fromkeys(distrust.of_agent(agent)))
        spec = _frozen(agent, role)
        for name in (agent.name, f"{agent.name}@{role.name}"):
            if self.agents.setdefault(name, spec) == spec:
                return name
        raise AssertionError(f"two roles {role.name} in one plan")

    def teach(self, task: TaskSpec, names: Iterable[str]) -> TaskSpec:
        """Give the task the skills, and tell it of those there are not."""
        wanted = unique(names)
        known = self.catalog.skills
        for name in wanted:
            if name in known:
                skill = known[name]
                self.skills[name] = SkillSpec(
                    name=name,
                    description=skill.description,
                    source=skill.source.value,
                    folder=skill.folder,
                    text=skill.text,
                )
        return replace(
            task,
            skills=tuple(name for name in wanted if name in known),
            skills_missing=tuple(name for name in wanted if name not in known),
        )

    def distrust_step(self, workflow: Workflow, step: Step) -> None:
        self.untrusted.update(dict.fromkeys(distrust.of_step(workflow, step)))


class _Planner:
    def __init__(self, catalog: Catalog, request: PlanRequest) -> None:
        self._request = request
        self._find = Finder(catalog)
        self._crew = _Crew(catalog)

    def of_agent(self) -> Plan:
        self._refuse_unused_changes(())
        agent = self._find.agent(self._request.agent, "agent")
        role = Role(name=agent.name, agent=agent.name)
        task = TaskSpec(
            id=_task_id(agent.name), role=agent.name, prompt=self._request.goal, adapter=Adapter.PI
        )
        return self._plan([self._done_by(task, agent, role, ())])

    def of_tasks(self) -> Plan:
        self._refuse_unused_changes({task.role for task in self._request.tasks if task.role})
        tasks: list[TaskSpec] = []
        for index, named in enumerate(self._request.tasks):
            task = TaskSpec(id=named.id, role=named.role, prompt=named.prompt)
            change = self._request.role_overrides.get(named.role, _NO_CHANGE)
            name = change.agent or named.agent
            if not name:
                tasks.append(self._crew.teach(task, named.skills))
                continue
            agent = self._find.agent(name, f"tasks[{index}].agent")
            role = Role(name=named.role or agent.name, agent=agent.name)
            task = self._done_by(replace(task, model=change.model), agent, role, named.skills)
            tasks.append(task)
        return self._plan(tasks)

    def of_workflow(self) -> Plan:
        request = self._request
        team = self._find.team(request.team) if request.team else None
        name = request.workflow or (team.workflow if team else "") or DEFAULT
        workflow = self._find.workflow(name)
        self._refuse_unused_changes({step.role for step in workflow.steps if step.role})
        roles = self._roles(team, workflow)
        tasks = [self._step(workflow, step, roles) for step in workflow.steps]
        counts = [
            each.max_concurrent_workers
            for each in (team, workflow)
            if each is not None and each.max_concurrent_workers is not None
        ]
        made = self._plan(tasks, team=team.name if team else "", workflow=workflow.name)
        return replace(made, max_concurrent_workers=min(counts, default=None))

    def _roles(self, team: Team | None, workflow: Workflow) -> Mapping[str, Role]:
        """Return who plays which part. Without a team it is the agent of the part's name."""
        if team is None:
            names = unique(step.role for step in workflow.steps)
            return {name: Role(name=name, agent=name) for name in names}
        roles = {role.name: role for role in team.roles}
        overridden = {n for n, change in self._request.role_overrides.items() if change.agent}
        missing = without_role(workflow, {*roles, *overridden})
        if missing:
            step = missing[0]
            raise refused(
                "workflow",
                f"step {step.id} of {workflow.name} needs the role {step.role}, which the team "
                f"{team.name} does not have; it has {', '.join(roles)}",
            )
        return {name: Role(name=name, agent=name) for name in overridden} | roles

    def _step(self, workflow: Workflow, step: Step, roles: Mapping[str, Role]) -> TaskSpec:
        outputs = outputs_of(workflow.steps)
        task = TaskSpec(
            id=step.id,
            depends_on=needed(step, workflow.steps),
            phase=step.parallel_group,
            role=step.role,
            model=step.model,
            reads=tuple(name for name in step.reads if name in outputs),
            output=OutputSpec(name=step.output),
            verify=step.verify,
            prompt=step.text.replace(_GOAL, self._request.goal),
        )
        self._crew.distrust_step(workflow, step)
        if step.adapter in {Adapter.COMMAND, Adapter.SCAFFOLD} or not step.role:
            adapter = step.adapter or Adapter.COMMAND
            return replace(task, adapter=adapter, command=step.command)
        role = roles[step.role]
        change = self._request.role_overrides.get(step.role, _NO_CHANGE)
        agent = self._find.agent(change.agent or role.agent, f"role_overrides.{step.role}.agent")
        if not step.default_skills:
            role = replace(role, default_skills=False)
        task = replace(task, model=change.model or step.model or role.model)
        task = self._done_by(task, agent, role, step.skills)
        if step.adapter is None:
            return task
        return replace(task, adapter=step.adapter, command=step.command or task.command)

    def _done_by(self, task: TaskSpec, agent: Agent, role: Role, skills: Iterable[str]) -> TaskSpec:
        own = role_defaults(role.name) if role.default_skills else ()
        return self._crew.teach(
            replace(
                task,
                agent=self._crew.take(agent, role),
                adapter=agent.adapter,
                command=told(agent.command, task.prompt) or ("pi",),
                env_from=agent.env_from,
                read_only=is_read_only(agent, role.name),
            ),
            (*own, *agent.skills, *role.skills, *skills),
        )

    def _refuse_unused_changes(self, roles: Iterable[str]) -> None:
        known = set(roles)
        for name in self._request.role_overrides:
            if name not in known:
                there = f"; there are {', '.join(sorted(known))}" if known else ""
                field = f"role_overrides.{name}"
                raise refused(field, f"the run has no role {name!r}{there}", name, known)

    def _plan(self, tasks: Iterable[TaskSpec], team: str = "", workflow: str = "") -> Plan:
        crew = self._crew
        used = {
            "agent": unique(agent.name for agent in crew.agents.values()),
            "skill": tuple(crew.skills),
            "team": unique([team]),
            "workflow": unique([workflow]),
        }
        broken = (self._find.broken(kind, name) for kind, names in used.items() for name in names)
        return Plan(
            tasks=tuple(tasks),
            agents=crew.agents,
            skills=crew.skills,
            team=team,
            workflow=workflow,
            untrusted=tuple(crew.untrusted),
            problems=tuple(problem for problem in broken if problem is not None),
        )


def told(command: tuple[str, ...], prompt: str) -> tuple[str, ...]:
    """Return the command with the task's text where it asks for it."""
    return tuple(argument.replace(PROMPT, prompt) for argument in command)


def _frozen(agent: Agent, role: Role) -> AgentSpec:
    policy = tool_policy(agent, role.name)
    tools = policy.tools
    if tools is not None:
        tools = tuple(tool for tool in tools if tool not in policy.excluded)
    return AgentSpec(
        name=agent.name,
        source=agent.source.value if agent.source is Source.BUILTIN else agent.file,
        system_prompt=agent.system_prompt,
        append_system_prompt=agent.append_system_prompt,
        model=agent.model,
        thinking=role.thinking or agent.thinking,
        tools=tools,
        excluded_tools=policy.excluded,
        project_context=agent.project_context,
        max_turns=agent.max_turns,
        read_only=is_read_only(agent, role.name),
    )


def _task_id(name: str) -> str:
    return re.sub(r"[^a-z0-9_-]", "-", name.lower())[:_TASK_CHARACTERS]
