"""Prompts, and what they are made from, for tests that name only what they are about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crewd.core.model import Attempt, Result, Run, Task
from crewd.core.prompt import Prompt, task_prompt
from crewd.core.spec import OutputSpec, RunSpec, SkillSpec, TaskSpec
from crewd.core.words import TaskStatus

RUN_ID: Final = "run_1"
FOLDER: Final = "/state/artifacts/run_1"
GOAL: Final = "Make it twice as fast."
TEXT: Final = "Measure the import of the package."


def a_dependency(  # noqa: PLR0913 - a test names only what it is about
    task_id: str,
    text: str = "",
    *,
    result: Result | None = None,
    status: TaskStatus = TaskStatus.COMPLETED,
    message: str = "",
    output: str = "",
) -> Task:
    """A task that has ended, with this result; without one it handed nothing in."""
    spec = TaskSpec(id=task_id, output=OutputSpec(name=output))
    task = Task(run_id=RUN_ID, id=task_id, position=0, spec=spec, status=status)
    task.status_message = message
    task.result = result or (Result(text=text) if text else None)
    return task


def a_skill(name: str, text: str, source: str = "user") -> SkillSpec:
    return SkillSpec(name=name, source=source, folder=f"/w/skills/{name}", text=text)


def a_prompt(  # noqa: PLR0913 - a test names only what it is about
    *dependencies: Task,
    text: str = TEXT,
    goal: str = GOAL,
    skills: Sequence[SkillSpec] = (),
    missing: Sequence[str] = (),
    reads: Sequence[str] = (),
    output: OutputSpec | None = None,
    previous: Attempt | None = None,
) -> Prompt:
    spec = TaskSpec(
        id="measure",
        skills=tuple(skill.name for skill in skills),
        skills_missing=tuple(missing),
        reads=tuple(reads),
        output=output or OutputSpec(),
        prompt=text,
    )
    run_spec = RunSpec(goal=goal, cwd="/w", skills={skill.name: skill for skill in skills})
    return task_prompt(
        Run(id=RUN_ID, spec=run_spec),
        Task(run_id=RUN_ID, id=spec.id, position=9, spec=spec),
        previous.number + 1 if previous else 1,
        dependencies=dependencies,
        artifacts=FOLDER,
        previous=previous,
    )
