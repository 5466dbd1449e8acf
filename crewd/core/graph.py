"""The task graph: refused whole when it names what is not there, itself, or a circle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from crewd.core.errors import CrewdError, Reason, Violation
from crewd.core.spec import TaskSpec

SHOWN: Final = 20
"""Tasks of a cycle that its message names."""


def check(tasks: Sequence[TaskSpec]) -> None:
    """Raise `GRAPH_UNKNOWN_TASK` or `GRAPH_CYCLE` unless the tasks form a graph that can run."""
    _check_known(tasks)
    cycle = find_cycle({task.id: task.depends_on for task in tasks})
    if cycle:
        shown = cycle if len(cycle) <= SHOWN else [*cycle[:SHOWN], "…", cycle[-1]]
        path = " -> ".join(shown)
        raise CrewdError(
            Reason.GRAPH_CYCLE,
            f"the tasks wait for each other: {path}; remove one of these dependencies",
            violations=[Violation("tasks", f"cycle {path}")],
            path=path,
        )


def _check_known(tasks: Sequence[TaskSpec]) -> None:
    known = {task.id for task in tasks}
    unknown = [
        (index, task.id, needed)
        for index, task in enumerate(tasks)
        for needed in task.depends_on
        if needed not in known
    ]
    if unknown:
        violations = [
            Violation(f"tasks[{index}].depends_on", f"task {task} depends on unknown task {needed}")
            for index, task, needed in unknown
        ]
        _, task_id, depends_on = unknown[0]
        raise CrewdError(
            Reason.GRAPH_UNKNOWN_TASK,
            f"{violations[0].description}; name a task of this run",
            violations=violations,
            task_id=task_id,
            depends_on=depends_on,
        )


def find_cycle(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """Return one cycle as a path that ends where it began; empty when there is none."""
    done: set[str] = set()
    for root in needs:
        cycle = _cycle_from(root, needs, done)
        if cycle:
            return cycle
    return []


def _cycle_from(root: str, needs: Mapping[str, Sequence[str]], done: set[str]) -> list[str]:
    path: dict[str, None] = {}
    stack = [(root, iter(needs.get(root, ())))]
    if root in done:
        return []
    path[root] = None
    while stack:
        node, rest = stack[-1]
        following = next((n for n in rest if n not in done), None)
        if following is None:
            stack.pop()
            path.pop(node)
            done.add(node)
        elif following in path:
            trail = list(path)
            return [*trail[trail.index(following) :], following]
        else:
            path[following] = None
            stack.append((following, iter(needs.get(following, ()))))
    return []
