"""The sections of a prompt, in their order, and all of them together within the limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crewd.core.model import Attempt, Run, Task
from crewd.core.prompt.dependencies import (
    MOST_SHOWN,
    TOTAL_CHARACTERS,
    HandedIn,
    Rendering,
    dependencies_part,
    handed_in,
    in_order,
)
from crewd.core.prompt.fence import Fence, fence_of
from crewd.core.prompt.rules import READ_ONLY, RULES
from crewd.core.prompt.skills import (
    Shown,
    foreign_texts,
    missing_skills,
    shown_skills,
    skills_part,
)
from crewd.core.prompt.task import expected_part, message_of, run_part, task_part, text_of
from crewd.core.prompt.values import Leftovers, Part, Prompt, Section
from crewd.core.values import record

MOST_BYTES: Final = 3 * 512 * 1024
_ROOMS: Final = ((TOTAL_CHARACTERS, MOST_SHOWN), (TOTAL_CHARACTERS // 4, 64), (0, 16))
"""Characters of results, and how many of them; the smaller ones are for a task that is huge."""


@record
class _Given:
    run: Run
    task: Task
    number: int
    previous: Attempt | None
    artifacts: str
    skills: Sequence[Shown]
    ordered: Sequence[Task]
    shown: Sequence[HandedIn]
    skill_fence: Fence
    fence: Fence


def task_prompt(  # noqa: PLR0913 - what a prompt is made from, each from another row
    run: Run,
    task: Task,
    number: int,
    *,
    dependencies: Sequence[Task],
    artifacts: str,
    previous: Attempt | None = None,
) -> Prompt:
    """Return the prompt of an attempt. `artifacts` is the folder where spills will be found."""
    skills = shown_skills(run.spec, task.spec)
    ordered = in_order(task, dependencies)
    shown = [handed_in(dependency) for dependency in ordered[:MOST_SHOWN]]
    of_skills = list(foreign_texts(skills))
    foreign = [*of_skills, *(text for handed in shown for text in handed.texts())]
    foreign.append(message_of(previous))
    given = _Given(
        run=run,
        task=task,
        number=number,
        previous=previous,
        artifacts=artifacts,
        skills=skills,
        ordered=ordered,
        shown=shown,
        # A mark of their own: the skills read the same in the next task, and so can be cached.
        skill_fence=fence_of(of_skills, foreign),
        fence=fence_of(foreign, foreign),
    )
    return _within_limit(given)


def _within_limit(given: _Given) -> Prompt:
    prompt = _prompt(given, *_ROOMS[0])
    for room, most_shown in _ROOMS[1:]:
        if _size(prompt.text) <= MOST_BYTES:
            break
        prompt = _prompt(given, room, most_shown)
    return prompt


def _prompt(given: _Given, room: int, most_shown: int) -> Prompt:
    run, task = given.run, given.task
    leftovers = Leftovers(given.artifacts)
    agent = run.spec.agents.get(task.spec.agent)
    read_only = task.spec.read_only or (agent is not None and agent.read_only)
    rendering = Rendering(room, given.fence, leftovers)
    parts = [
        Part("rules", RULES),
        Part("read_only", READ_ONLY if read_only else ""),
        skills_part(
            given.skills, missing_skills(run.spec, task.spec), given.skill_fence, leftovers
        ),
        run_part(run, text_of(run, task), room, leftovers),
        dependencies_part(task, given.ordered, given.shown[:most_shown], rendering),
        task_part(run, task, given.number, given.previous, given.fence),
        expected_part(task.spec.output, leftovers, read_only=read_only),
    ]
    parts = [part for part in parts if part.text]
    return Prompt(
        text="\n\n".join(part.text for part in parts),
        sections=tuple(Section(name=part.name, size_bytes=_size(part.text)) for part in parts),
        omitted=tuple(leftovers.omitted),
        spills=tuple(leftovers.spills),
    )


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
