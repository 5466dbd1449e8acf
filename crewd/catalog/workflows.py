"""Workflow files: front matter, then a heading for each step with its keys and its task."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from crewd.catalog import frontmatter
from crewd.catalog.agents import NAME, NAME_RULE
from crewd.catalog.fields import Fields, spelled, unique
from crewd.catalog.files import Found, findings_of
from crewd.catalog.findings import Findings, did_you_mean, shown
from crewd.catalog.nodes import Scalar
from crewd.catalog.teams import ROLE, concurrency
from crewd.catalog.text import heading, outside_fences
from crewd.catalog.values import Problem, Step, Workflow
from crewd.core.graph import find_cycle
from crewd.core.spec import Adapter

SUFFIX: Final = ".workflow.md"
MOST_STEPS: Final = 500
TASK_ID: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_OUTPUT: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
_KEY: Final = re.compile(r"([A-Za-z][\w-]*)[ \t]*:(?:[ \t].*)?")
_MORE: Final = re.compile(r"[ \t]+\S.*|-[ \t].*")
_KEBAB: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_KEYS: Final = (
    *("role", "depends_on", "output", "reads", "model", "skills", "skill", "verify", "task"),
    *("parallel_group", "command", "adapter"),
)
_STEP_NO_EFFECT: Final[frozenset[str]] = frozenset(
    {
        *("progress", "worktree", "seed_paths", "spec_refs", "spec_strict", "pre_step_script"),
        *("pre_step_args", "pre_step_timeout", "pre_step_optional"),
    }
)
_NO_EFFECT: Final = frozenset(("topology", "coalesce_micro_tasks", "spec_strict", "source"))


def parse(found: Found) -> tuple[Workflow | None, list[Problem]]:
    """Return the workflow, None if it cannot be used, and what is wrong."""
    findings = findings_of(found)
    document = frontmatter.read(found.text, findings)
    fields = Fields(document.head, findings)
    name = fields.text("name") or found.path.name.removesuffix(SUFFIX)
    if not NAME.fullmatch(name):
        findings.error(fields.line("name"), f"{shown(name)} is no name for a workflow", NAME_RULE)
    steps = tuple(_steps(document.body, document.body_line, findings))
    if len(steps) > MOST_STEPS:
        findings.error(steps[MOST_STEPS].line, f"the workflow has more than {MOST_STEPS} steps")
        return None, findings.problems
    workflow = Workflow(
        name=name,
        description=fields.text("description"),
        source=found.place.source,
        file=findings.file,
        max_concurrent_workers=concurrency(fields, found.place.source),
        steps=steps,
    )
    fields.finish(_NO_EFFECT)
    check(steps, findings)
    return (None if findings.failed else workflow), findings.problems


def needed(step: Step, steps: Sequence[Step]) -> tuple[str, ...]:
    """Return the steps it waits for: those it names, and those whose outputs it reads."""
    makers = (other.id for other in steps if other.output and other.output in step.reads)
    return unique((*step.depends_on, *makers))


def outputs_of(steps: Sequence[Step]) -> set[str]:
    return {step.output for step in steps if step.output}


def check(steps: Sequence[Step], findings: Findings) -> None:
    """Tell what keeps the steps from being carried out."""
    if not steps and not findings.failed:
        fix = "write each as a heading and its keys: ## plan, role: planner"
        findings.error(1, "the workflow has no steps", fix)
    known: dict[str, Step] = {}
    for step in steps:
        if known.setdefault(step.id, step) is not step:
            findings.error(step.line, f"the step {step.id} is there twice", "give it another name")
    for step in steps:
        _check_names(step, steps, known, findings)
    cycle = find_cycle(
        {s.id: tuple(n for n in needed(s, steps) if n in known) for s in known.values()}
    )
    if cycle:
        line = known[cycle[0]].line
        path = " -> ".join(cycle)
        findings.error(line, f"steps wait for each other: {path}", "remove a dependency")


def without_role(workflow: Workflow, roles: Iterable[str]) -> list[Step]:
    """Return the steps whose role is none of these."""
    known = set(roles)
    return [step for step in workflow.steps if step.role and step.role not in known]


def _check_names(
    step: Step, steps: Sequence[Step], known: dict[str, Step], findings: Findings
) -> None:
    for name in step.depends_on:
        if name not in known:
            fix = did_you_mean(name, known) or f"there are: {', '.join(known)}"
            findings.error(
                step.line, f"step {step.id} depends on {shown(name)}, which is no step", fix
            )
    outputs = outputs_of(steps)
    for name in step.reads:
        if name not in outputs:
            fix = did_you_mean(name, outputs) or "name the `output` of another step"
            message = f"step {step.id} reads {shown(name)}, which no step hands in"
            findings.warn(step.line, message, fix)


@dataclass(slots=True)
class _Part:
    """A heading, and what comes up to the next step."""

    title: str
    line: int
    keys: list[str] = field(default_factory=list[str])
    keys_line: int = 1
    text: list[str] = field(default_factory=list[str])


def _steps(body: str, first_line: int, findings: Findings) -> Iterator[Step]:
    for part in _parts(body.split("\n"), first_line, findings):
        step = _step(part, findings)
        if step is not None:
            yield step


def _parts(lines: list[str], first_line: int, findings: Findings) -> Iterator[_Part]:
    headings = {
        number: title
        for number, line in outside_fences("\n".join(lines), first_line)
        if (title := heading(line, level=2))
    }
    part: _Part | None = None
    number, end = first_line, first_line + len(lines)
    while number < end:
        if number in headings:
            begin, stop = _key_block(lines, number + 1 - first_line)
            keys = lines[begin:stop]
            if _is_step(headings[number], number, keys, findings):
                if part is not None:
                    yield part
                part = _Part(headings[number], number, keys, begin + first_line)
                number = stop + first_line
                continue
            _tell_prose(headings[number], number, part, findings)
        if part is not None:
            part.text.append(lines[number - first_line])
        number += 1
    if part is not None:
        yield part


def _key_block(lines: list[str], begin: int) -> tuple[int, int]:
    """Return where the keys below a heading begin and end, as indexes."""
    while begin < len(lines) and not lines[begin].strip():
        begin += 1
    stop = begin
    while stop < len(lines) and (
        _KEY.fullmatch(lines[stop].rstrip())
        or (stop > begin and _MORE.fullmatch(lines[stop].rstrip()))
    ):
        stop += 1
    return begin, stop


def _is_step(title: str, line: int, keys: list[str], findings: Findings) -> bool:
    names = [spelled(found[1]) for key in keys if (found := _KEY.fullmatch(key.rstrip()))]
    if any(name in _KEYS for name in names):
        return True
    for name in names:
        if fix := did_you_mean(name, _KEYS):
            findings.error(line, f"the heading {shown(title)} has no key of a step", fix)
            return False
    return False


def _tell_prose(title: str, line: int, part: _Part | None, findings: Findings) -> None:
    if _KEBAB.fullmatch(title):
        where = f"part of the step {part.title}" if part is not None else "not part of any step"
        message = f"the heading {shown(title)} is no step, for no key follows it; it is {where}"
        findings.warn(line, message, "if it is a step, add `role: …` below it")


def _step(part: _Part, findings: Findings) -> Step | None:
    if not TASK_ID.fullmatch(part.title):
        fix = "use lower-case letters, digits, - and _, at most 64"
        findings.error(part.line, f"{shown(part.title)} is no name for a step", fix)
        return None
    text = "\n".join(part.keys)
    fields = Fields(frontmatter.parsed(text, part.keys_line, findings, lenient=True), findings)
    step = _read_step(part, fields)
    fields.finish(_STEP_NO_EFFECT)
    return step


def _read_step(part: _Part, fields: Fields) -> Step:
    skills, default_skills = fields.skills("skills", "skill")
    command = fields.arguments("command")
    role = fields.text("role") or ("" if command else part.title)
    if role and not ROLE.fullmatch(role):
        fields.findings.error(part.line, f"step {part.title}: {shown(role)} is no name of a role")
    model = fields.text("model")
    texts = (fields.text("task"), "\n".join(part.text).strip())
    return Step(
        id=part.title,
        role=role,
        depends_on=_names(fields, "depends_on"),
        output=_output(part, fields),
        reads=_names(fields, "reads"),
        model="" if model in {"inherit", "false"} else model,
        skills=skills,
        default_skills=default_skills,
        verify=bool(fields.flag("verify")),
        parallel_group=fields.text("parallel_group"),
        adapter=_adapter(part, fields, command),
        command=command,
        text="\n\n".join(filter(None, texts)) or "{goal}",
        line=part.line,
    )


def _names(fields: Fields, name: str) -> tuple[str, ...]:
    node = fields.node(name)
    off = isinstance(node, Scalar) and node.plain and node.text.lower() == "false"
    return () if off else fields.words(name)


def _output(part: _Part, fields: Fields) -> str:
    if not fields.has("output"):
        fields.node("output")
        return ""
    node = fields.node("output")
    if isinstance(node, Scalar) and node.plain and node.text.lower() == "false":
        return ""
    name = fields.text("output")
    if not _OUTPUT.fullmatch(name):
        fix = "use a file name without folders, such as plan.md; or remove the key"
        message = f"step {part.title}: {shown(name)} is no name for an output"
        fields.findings.error(fields.line("output"), message, fix)
    return name


def _adapter(part: _Part, fields: Fields, command: tuple[str, ...]) -> Adapter | None:
    names = [adapter.value for adapter in Adapter]
    named = fields.choice(names, "adapter")
    if not named:
        return Adapter.COMMAND if command else None
    adapter = Adapter(named)
    if adapter in {Adapter.COMMAND, Adapter.JSONL} and not command:
        fix = "add `command: [program, argument]`"
        line = fields.line("adapter")
        fields.findings.error(line, f"step {part.title}: adapter {adapter} needs a command", fix)
    return adapter
