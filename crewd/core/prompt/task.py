"""What the run is for, what this task is, and how it is handed in."""

from __future__ import annotations

from typing import Final

from crewd.core.model import Attempt, Run, Task
from crewd.core.prompt.fence import Fence
from crewd.core.prompt.rules import HANDOFF, HANDOFF_HELP
from crewd.core.prompt.text import code_block, displayed, one_line, shorten
from crewd.core.prompt.values import Leftovers, Part
from crewd.core.spec import OutputSpec

GOAL_CHARACTERS: Final = 16_000
SCHEMA_CHARACTERS: Final = 32_000
_MESSAGE: Final = 4_000


def text_of(run: Run, task: Task) -> str:
    return task.spec.prompt or run.spec.goal


def message_of(previous: Attempt | None) -> str:
    return shorten(displayed(previous.message), _MESSAGE) if previous is not None else ""


def run_part(run: Run, task_text: str, room: int, leftovers: Leftovers) -> Part:
    spec = run.spec
    facts = [f"Run: {run.id}"]
    facts += [f"Team: {one_line(spec.team)}"] if spec.team else []
    facts += [f"Workflow: {one_line(spec.workflow)}"] if spec.workflow else []
    lines = ["# Run", "\n".join(facts)]
    if spec.goal == task_text:
        lines.append("Its goal is the text of the task, below.")
    elif spec.goal:
        lines += ["## Goal of the run", _goal(spec.goal, min(GOAL_CHARACTERS, room), leftovers)]
    return Part("run", "\n\n".join(lines))


def task_part(run: Run, task: Task, number: int, previous: Attempt | None, fence: Fence) -> Part:
    spec = task.spec
    title = one_line(spec.title)
    named = title and title.lower() != task.id
    facts = [f"Task: {task.id}" + (f" ({title})" if named else "")]
    facts += [f"Role: {one_line(spec.role)}"] if spec.role else []
    facts.append(f"Attempt: {number}")
    lines = ["# Task", "\n".join(facts)]
    if previous is not None:
        lines += _before(previous, fence)
    lines += ["## Text of the task", text_of(run, task)]
    return Part("task", "\n\n".join(lines))


def expected_part(output: OutputSpec, leftovers: Leftovers, *, read_only: bool) -> Part:
    lines = ["# Expected output"]
    if output.schema_json:
        lines += _data(output.schema_json, leftovers)
    if output.name:
        lines.append(
            f"Your result is kept as `{one_line(output.name)}`, for later tasks and for people: "
            "write it as that document, whole, and end it with the hand-off."
        )
    lead = "The `summary`" if output.schema_json else "Your last message"
    files = " (this task changes none)" if read_only else ""
    lines += [f"{lead} has, or ends with, this hand-off:", HANDOFF]
    lines.append(HANDOFF_HELP.format(files=files))
    return Part("expected_output", "\n\n".join(lines))


def _goal(goal: str, most: int, leftovers: Leftovers) -> str:
    """Return the user's words as they are, but for those that there is no room for."""
    if len(goal) <= most:
        return goal
    where = leftovers.keep("goal.md", goal)
    size = f"its first {most} of {len(goal)} characters"
    leftovers.tell(f"goal: {size} shown; the whole: {where}")
    return f"{goal[:most]}\n\n[... {size}; the whole is in {where} ...]"


def _before(previous: Attempt, fence: Fence) -> list[str]:
    ended = previous.outcome or "lost"
    cause = f" ({previous.cause})" if previous.cause and previous.cause != ended else ""
    told = (
        f"Attempt {previous.number} ended: {ended}{cause}. What it did may still be there: look "
        "before you do it again."
    )
    lines = [told]
    if message := message_of(previous):
        lines.append(fence.around(message, f"how attempt {previous.number} ended"))
    return lines


def _data(schema: str, leftovers: Leftovers) -> list[str]:
    lead = (
        "Hand in by calling the tool `submit_result` once, when everything else is done, with "
        "`summary` and with `data`: JSON that satisfies the JSON Schema (draft 2020-12) below. If "
        "it is refused, mend what it says is wrong and call again. Without this call the task "
        "does not count as done."
    )
    if len(schema) <= SCHEMA_CHARACTERS:
        return [lead, code_block(schema, "json")]
    where = leftovers.keep("output.schema.json", schema)
    told = f"the schema, {len(schema)} characters"
    leftovers.tell(f"{told}: left out; it is in {where}")
    return [lead, f"Omitted for want of room: {told}. Read it first; it is in {where}."]
