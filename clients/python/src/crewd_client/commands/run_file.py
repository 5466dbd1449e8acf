"""`run.yaml`: what it says, and everything that is wrong with it, by line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from crewd_client.commands.exits import Refusal
from crewd_client.json import Path as FieldPath
from crewd_client.json import Plain, Problem, did_you_mean, read_json, spell
from crewd_client.v1.spec_pb2 import RunSpec, TaskSpec

MAX_TASKS = 10_000
_SHOWN = 50
_MAX_NODES = 2_000_000
_TASK_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_NEEDS_NO_COMMAND = {"scaffold", "pi"}
_SOURCES = ("team", "workflow", "agent")
_INTEGER = re.compile(r"[-+]?\d[\d_]*|0x[0-9a-fA-F]+|0o[0-7]+")
_REAL = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")
_WORDS: Mapping[str, bool | None] = {
    "": None,
    "~": None,
    "null": None,
    "true": True,
    "false": False,
}


@dataclass(frozen=True, slots=True)
class RunFile:
    """A file's contents, and on which line each part of it stands."""

    name: str
    spec: RunSpec
    lines: Mapping[FieldPath, int]

    def place(self, path: FieldPath) -> str:
        """Give `file:line` of a part, or of what it would be in."""
        return f"{self.name}:{_line(self.lines, path)}"

    def place_of_field(self, field: str) -> str | None:
        """Give the place the daemon means with `spec.tasks[3].command`, or without `spec.`."""
        parts = re.findall(r"\[(\d+)\]|([^.\[\]]+)", field.removeprefix("spec."))
        path = tuple(int(index) if index else name for index, name in parts)
        # Of what is not in the file at all there is no place: it was typed, or is a default.
        return self.place(path) if path[:1] in self.lines else None

    def place_of_task(self, task_id: str) -> str | None:
        """Give the place of what a task depends on."""
        ids = [task.id for task in self.spec.tasks]
        if task_id not in ids:
            return None
        return self.place(("tasks", ids.index(task_id), "depends_on"))


def load_run_file(path: Path) -> RunFile:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise Refusal(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Refusal(f"{path}: is not UTF-8 text") from None
    return parse_run_file(text, str(path))


def parse_run_file(text: str, name: str) -> RunFile:
    """Read the text; a `Refusal` lists all that is wrong."""
    tree = _Tree(name)
    try:
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _refusal(name, {}, [Problem((), error.problem or "no YAML")], line) from None
    except yaml.YAMLError as error:
        raise _refusal(name, {}, [Problem((), str(error).splitlines()[0])], 1) from None
    data: object = dict[str, object]() if node is None else tree.value(node, ())
    spec, found = read_json(data, RunSpec)
    problems = [*tree.problems, *map(_with_field, found)]
    wrong = {problem.path for problem in problems}
    if () not in wrong:
        problems += [each for each in _rules(spec) if not _covered(each.path, wrong)]
    if problems:
        raise _refusal(name, tree.lines, problems)
    return RunFile(name, spec, tree.lines)


_LOADER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Tree:
    """Turns nodes into values. Only `true`, `false`, null and numbers are not text.

    The type that YAML 1.1 gives to `yes`, `12:30` or a date surprises; nothing here needs it.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.lines: dict[FieldPath, int] = {}
        self.problems: list[Problem] = []
        self._nodes = 0

    def value(self, node: Node, path: FieldPath) -> object:
        self.lines.setdefault(path, node.start_mark.line + 1)
        self._nodes += 1
        # An alias within what it stands for has no end.
        if self._nodes > _MAX_NODES or len(path) > 50:  # noqa: PLR2004
            raise Refusal(f"{self._name}: is too large, or refers to itself")
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            return [self.value(item, (*path, i)) for i, item in enumerate(node.value)]
        return _scalar(cast("ScalarNode", node))

    def _mapping(self, node: MappingNode, path: FieldPath) -> dict[str, object]:
        found: dict[str, object] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, ScalarNode):
                self.lines[(*path, "?")] = line
                self.problems.append(Problem((*path, "?"), "a key must be text"))
                continue
            key = str(key_node.value)
            if key in found:
                first = self.lines[(*path, key)]
                self.lines[(*path, key, "again")] = line
                problem = f"{key!r} is there twice, first on line {first}"
                self.problems.append(Problem((*path, key, "again"), problem))
                continue
            self.lines[(*path, key)] = line
            found[key] = self.value(value_node, (*path, key))
        return found


def _scalar(node: ScalarNode) -> object:
    text = str(node.value)
    if node.style:
        return text
    if text.lower() in _WORDS:
        return Plain(text, _WORDS[text.lower()])
    if _INTEGER.fullmatch(text):
        digits = text.lstrip("+-0_") or "0"
        based = text[:2] in {"0x", "0o"}
        return Plain(text, int(text, 0) if based else _signed(digits, text))
    return Plain(text, float(text)) if _REAL.fullmatch(text) else text


def _signed(digits: str, text: str) -> int | float:
    # More digits than any field holds: as a number it only has to be out of range.
    number = int(digits.replace("_", "")) if len(digits) < 40 else 2**80  # noqa: PLR2004
    return -number if text.startswith("-") else number


def _with_field(problem: Problem) -> Problem:
    if not problem.path or problem.message.startswith("unknown key"):
        return problem
    return Problem(problem.path, str(problem))


def _rules(spec: RunSpec) -> Iterator[Problem]:
    named = next((name for name in _SOURCES if getattr(spec, name)), None)
    if not spec.tasks and named is None:
        yield Problem(("tasks",), "'tasks' is required, or a 'team', 'workflow' or 'agent'")
    if spec.tasks and named is not None:
        yield Problem((named,), f"'{named}' and 'tasks' exclude each other")
    if len(spec.tasks) > MAX_TASKS:
        path: FieldPath = ("tasks", MAX_TASKS)
        yield Problem(path, f"{len(spec.tasks)} tasks are too many: at most {MAX_TASKS}")
        return
    first: dict[str, int] = {}
    for index, task in enumerate(spec.tasks):
        if task.id in first:
            message = f"the id {task.id!r} is taken by task {first[task.id] + 1} of the list"
            yield Problem(("tasks", index, "id"), message)
        elif task.id:
            first[task.id] = index
    for index, task in enumerate(spec.tasks):
        yield from _task_rules(task, ("tasks", index), first)


def _task_rules(task: TaskSpec, path: FieldPath, ids: Mapping[str, int]) -> Iterator[Problem]:
    if not task.id:
        yield Problem((*path, "id"), "'id' is required")
    elif not _TASK_ID.fullmatch(task.id):
        message = f"{task.id!r} is no id: a-z, 0-9, _ and -, at most 64, not beginning with _ or -"
        yield Problem((*path, "id"), message)
    if not (task.command or task.agent or task.adapter in _NEEDS_NO_COMMAND):
        yield Problem((*path, "command"), f"task {task.id!r} has no 'command'")
    for position, other in enumerate(task.depends_on):
        at = (*path, "depends_on", position)
        if other == task.id:
            yield Problem(at, f"{task.id!r} depends on itself")
        elif other not in ids:
            yield Problem(at, f"there is no task {other!r}{did_you_mean(other, ids)}")


def _covered(path: FieldPath, wrong: set[FieldPath]) -> bool:
    """Tell whether something at, within or around this part is wrong already."""
    return any(path[: len(other)] == other or other[: len(path)] == path for other in wrong)


def _refusal(
    name: str, lines: Mapping[FieldPath, int], problems: list[Problem], line: int = 0
) -> Refusal:
    placed = sorted(
        ((line or _line(lines, problem.path), problem) for problem in problems),
        key=lambda each: each[0],
    )
    shown = [f"{name}:{at}: {problem.message}" for at, problem in placed[:_SHOWN]]
    if len(placed) > _SHOWN:
        shown.append(f"… and {len(placed) - _SHOWN} more")
    count = "1 problem" if len(placed) == 1 else f"{len(placed)} problems"
    violations = [
        {"field": spell(problem.path), "description": problem.message, "line": at}
        for at, problem in placed[:_SHOWN]
    ]
    message = "\n".join([f"{name} has {count}", *shown])
    return Refusal(message, detail={"reason": "SPEC_INVALID", "violations": violations})


def _line(lines: Mapping[FieldPath, int], path: FieldPath) -> int:
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)
