"""How a run begins."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from crewd.core.events import RunCreated, TasksAdded, WarningRaised
from crewd.core.model import Run, Task
from crewd.core.stimuli import Create
from crewd.core.turn import Turn

TASKS_PER_EVENT: Final = 50
"""So that a `tasks_added` stays below the size of an event, whatever its tasks say."""


def create(turn: Turn, stimulus: Create) -> None:
    """Record the run and its tasks. The spec has been checked; nothing can be refused here."""
    spec = stimulus.spec
    run = Run(
        id=stimulus.run_id,
        spec=replace(spec, tasks=()),
        title=spec.title,
        created_by=stimulus.actor.name,
        request_id=stimulus.request_id,
        create_time=turn.now,
        update_time=turn.now,
    )
    turn.tell(RunCreated(run=run))
    tasks = [
        Task(
            run_id=run.id,
            id=task.id,
            position=position,
            spec=task,
            create_time=turn.now,
            update_time=turn.now,
        )
        for position, task in enumerate(spec.tasks)
    ]
    for start in range(0, len(tasks), TASKS_PER_EVENT):
        turn.tell(TasksAdded(tuple(tasks[start : start + TASKS_PER_EVENT])))
    for message in stimulus.warnings:
        turn.tell(WarningRaised(code="catalog_problem", message=message))
