"""Who does a run: names of teams, workflows, agents and skills become tasks, frozen into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from crewd.catalog import (
    NamedTask,
    Plan,
    PlanRequest,
    RoleChange,
    Untrusted,
    is_trusted,
    load,
    plan,
    root_of,
)
from crewd.core.errors import CrewdError, Reason
from crewd.core.spec import Adapter, RunSpec, TaskSpec
from crewd.rpc.spec import Staffed
from crewd.v1 import spec_pb2 as pb


class Staffing:
    """Looks into the files of the run's project and of the user, if the run names anything."""

    def __init__(self, home: Path, config_dir: Path) -> None:
        self._home = home
        self._config_dir = config_dir

    def __call__(self, spec: RunSpec, given: pb.RunSpec) -> Staffed:
        """Return the run with its tasks. Blocks. AGENT_NOT_FOUND, SPEC_INVALID, NOT_TRUSTED."""
        named = spec.team or spec.workflow or spec.agent
        if not named and not any(task.agent or task.skills for task in spec.tasks):
            return Staffed(spec)
        root = root_of(Path(spec.cwd))
        catalog = load(root, self._home, self._config_dir)
        planned = plan(catalog, _request(spec, given))
        self._refuse_untrusted(root, planned.untrusted)
        warnings = tuple(f"{p.file}:{p.line}: {p.message}" for p in planned.problems)
        if named:
            return Staffed(_of_plan(spec, given, planned), warnings)
        tasks = tuple(map(_staffed, spec.tasks, planned.tasks))
        spec = replace(spec, tasks=tasks, agents=planned.agents, skills=planned.skills)
        return Staffed(spec, warnings)

    def _refuse_untrusted(self, root: Path, untrusted: Sequence[Untrusted]) -> None:
        if not untrusted or is_trusted(self._config_dir, root):
            return
        first = untrusted[0]
        more = f" (and {len(untrusted) - 1} more)" if len(untrusted) > 1 else ""
        raise CrewdError(
            Reason.NOT_TRUSTED,
            f"{first.file}:{first.line}: {first.what}{more}, and the project is not trusted; "
            f"read its .crew folder, then: crewd trust {root}",
            path=str(root),
        )


def _request(spec: RunSpec, given: pb.RunSpec) -> PlanRequest:
    return PlanRequest(
        goal=spec.goal,
        team=spec.team,
        workflow=spec.workflow,
        agent=spec.agent,
        tasks=tuple(
            NamedTask(
                id=task.id,
                agent=task.agent,
                role=task.role,
                prompt=task.prompt or spec.goal,
                skills=task.skills,
            )
            for task in spec.tasks
        ),
        role_overrides={
            role: RoleChange(agent=change.agent, model=change.model)
            for role, change in given.role_overrides.items()
        },
    )


def _of_plan(spec: RunSpec, given: pb.RunSpec, planned: Plan) -> RunSpec:
    limits = spec.limits
    if planned.max_concurrent_workers and not given.limits.max_concurrent_workers:
        limits = replace(limits, max_concurrent_workers=planned.max_concurrent_workers)
    return replace(
        spec,
        team=planned.team,
        workflow=planned.workflow,
        agents=planned.agents,
        skills=planned.skills,
        limits=limits,
        tasks=tuple(
            replace(task, title=task.title or task.id, retry=spec.retry) for task in planned.tasks
        ),
    )


def _staffed(task: TaskSpec, known: TaskSpec) -> TaskSpec:
    """Return a task its author wrote out, with what the catalog knows of what it names."""
    task = replace(task, skills=known.skills, skills_missing=known.skills_missing)
    if not known.agent:
        return task
    ours = task.adapter in {Adapter.PI, known.adapter}
    return replace(
        task,
        agent=known.agent,
        adapter=known.adapter if ours else task.adapter,
        model=task.model or known.model,
        command=task.command or known.command,
        env_from=tuple(dict.fromkeys((*task.env_from, *known.env_from))),
        read_only=task.read_only or known.read_only,
    )
