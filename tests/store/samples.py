"""Rows, entries and an open store for the tests of the store."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

from crewd.core.changes import Changes
from crewd.core.model import Artifact, Ask, Attempt, Run, Task
from crewd.core.spec import RunSpec, TaskSpec
from crewd.core.units import Instant
from crewd.core.words import RunStatus, TaskStatus
from crewd.store import Batch, Entry, Log, Reads


def a_run(
    run_id: str = "run_a",
    status: RunStatus = RunStatus.RUNNING,
    *,
    created: int = 1,
    cwd: str = "/home/project",
    labels: dict[str, str] | None = None,
) -> Run:
    spec = RunSpec(cwd=cwd, goal="measure", labels=labels or {})
    return Run(id=run_id, spec=spec, status=status, create_time=Instant(created))


def a_task(
    position: int = 0, run_id: str = "run_a", status: TaskStatus = TaskStatus.RUNNING
) -> Task:
    task_id = f"t{position}"
    spec = TaskSpec(id=task_id, command=("true",))
    return Task(run_id=run_id, id=task_id, position=position, spec=spec, status=status)


def an_attempt(number: int = 1, task_id: str = "t0", run_id: str = "run_a") -> Attempt:
    return Attempt(run_id=run_id, task_id=task_id, number=number)


def an_ask(ask_id: str = "ask_a", *, created: int = 1, run_id: str = "run_a") -> Ask:
    return Ask(id=ask_id, run_id=run_id, task_id="t0", attempt=1, create_time=Instant(created))


def an_artifact(artifact_id: str = "art_a", *, run_id: str = "run_a") -> Artifact:
    return Artifact(id=artifact_id, run_id=run_id, task_id="t0", attempt=1, name="plan.md")


def entries(
    log: Log, count: int = 1, kind: str = "task_finished", data: bytes = b"x"
) -> list[Entry]:
    first = log.take_sequences(count)
    return [
        Entry(sequence=first + i, run_sequence=i + 1, kind=kind, chatter=False, data=data)
        for i in range(count)
    ]


class Store:
    """A log and its readers on one file, with all that the log told."""

    def __init__(self, path: Path, *, reserve: int = 0) -> None:
        self.path = path
        self.batches: list[Batch] = []
        self.states: asyncio.Queue[str] = asyncio.Queue()
        self.fatal: list[BaseException] = []
        self.log = Log(
            path,
            on_commit=self.batches.extend,
            on_state=self.states.put_nowait,
            on_fatal=self.fatal.append,
            reserve=reserve,
        )
        self.reads = Reads(path)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._stack.push_async_callback(self.log.close)
        self._stack.push_async_callback(self.reads.close)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def add(self, run: Run, *, tasks: Sequence[Task] = (), events: int = 1) -> None:
        changes = Changes(run=run, run_is_new=True, added_tasks=tasks)
        await self.log.append(run.id, entries(self.log, events), changes)

    @property
    def published(self) -> list[int]:
        return [entry.sequence for batch in self.batches for entry in batch.entries]
