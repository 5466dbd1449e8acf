"""Reading the store: each call is one read transaction on one of two threads.

What is read is committed, and a moment old. A deleted run and all that belonged to it is not
found, from the commit of its deletion on; only its last event stays in the log.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from crewd.core.model import Artifact, Ask, Attempt, Run, Task
from crewd.core.words import TaskStatus
from crewd.store.db import open_reader
from crewd.store.entries import Request
from crewd.store.history import EventPage, EventQuery, last_sequence, list_events
from crewd.store.listing import (
    ArtifactFilter,
    AskFilter,
    Listed,
    Page,
    RunFilter,
    RunVersion,
    list_artifacts,
    list_asks,
    list_run_versions,
    list_runs,
    list_tasks,
)
from crewd.store.loading import Counts, LoadedRun, count_open, load, load_open, open_run_ids
from crewd.store.queries import SQL
from crewd.store.rows import ARTIFACT, ASK, ATTEMPT, RUN, TASK, to_json

T = TypeVar("T")

_THREADS: Final = 2


class Reads:
    """Made after the log, closed before it."""

    def __init__(self, path: Path) -> None:
        self._idle: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        for _ in range(_THREADS):
            self._idle.put(open_reader(path))
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="store-reader")

    async def close(self) -> None:
        """Wait for the reads under way and close the connections."""
        await asyncio.to_thread(self._pool.shutdown)
        for _ in range(_THREADS):
            self._idle.get_nowait().close()

    async def get_run(self, run_id: str) -> Run | None:
        return next(iter(await self.get_runs([run_id])), None)

    async def get_runs(self, run_ids: Sequence[str]) -> list[Run]:
        """Return those of the runs that are there, in no order that is promised."""
        return [RUN.decode(row) for row in await self._rows("runs", to_json(run_ids))]

    async def list_runs(self, which: RunFilter, page: Page) -> Listed[Run]:
        """Unfinished runs first, the newest first within both."""
        return await self._read(partial(list_runs, which=which, page=page))

    async def known_runs(self, run_ids: Sequence[str]) -> set[str]:
        """Return those of the ids that are runs."""
        return {run_id for run_id, _ in await self._rows("run_versions", to_json(run_ids))}

    async def list_run_versions(self, which: RunFilter, page: Page) -> Listed[RunVersion]:
        """Return the same runs by id and the time they last changed."""
        return await self._read(partial(list_run_versions, which=which, page=page))

    async def find_run_ids(self, prefix: str, limit: int = 16) -> list[str]:
        """Return ids that begin so, in their order."""
        rows = await self._rows("run_ids_by_prefix", prefix, prefix + "\U0010ffff", limit)
        return [run_id for (run_id,) in rows]

    async def list_tasks(
        self, run_id: str, page: Page, statuses: Collection[TaskStatus] = ()
    ) -> Listed[Task]:
        """Tasks in the order of their positions; of all statuses when none is named."""
        return await self._read(partial(list_tasks, run_id=run_id, page=page, statuses=statuses))

    async def get_task(self, run_id: str, task_id: str) -> Task | None:
        rows = await self._rows("task", run_id, task_id)
        return TASK.decode(rows[0]) if rows else None

    async def list_attempts(self, run_id: str, task_id: str) -> list[Attempt]:
        return [ATTEMPT.decode(row) for row in await self._rows("attempts", run_id, task_id)]

    async def get_attempt(self, run_id: str, task_id: str, number: int = 0) -> Attempt | None:
        """Return one attempt; number 0 is the latest."""
        rows = await self._rows("attempt", run_id, task_id, number)
        return ATTEMPT.decode(rows[0]) if rows else None

    async def get_ask(self, ask_id: str) -> Ask | None:
        rows = await self._rows("ask", ask_id)
        return ASK.decode(rows[0]) if rows else None

    async def list_asks(self, which: AskFilter, page: Page) -> Listed[Ask]:
        """Open questions first, the newest first within both."""
        return await self._read(partial(list_asks, which=which, page=page))

    async def get_artifact(self, artifact_id: str) -> Artifact | None:
        rows = await self._rows("artifact", artifact_id)
        return ARTIFACT.decode(rows[0]) if rows else None

    async def latest_artifact(self, run_id: str, name: str) -> Artifact | None:
        """Return the last one of this name that the run recorded."""
        rows = await self._rows("latest_artifact", run_id, name)
        return ARTIFACT.decode(rows[0]) if rows else None

    async def list_artifacts(self, which: ArtifactFilter, page: Page) -> Listed[Artifact]:
        """Artifacts of a run in the order they were recorded."""
        return await self._read(partial(list_artifacts, which=which, page=page))

    async def list_events(self, query: EventQuery) -> EventPage:
        return await self._read(partial(list_events, query=query))

    async def last_sequence(self, run_id: str) -> int:
        """Return the sequence of the run's last event, 0 when it has none."""
        return await self._read(partial(last_sequence, run_id=run_id))

    async def find_request(self, request_id: str) -> Request | None:
        for row in await self._rows("request", request_id):
            names = ("id", "run_id", "method", "digest", "response", "time")
            return Request(**dict(zip(names, row, strict=True)))
        return None

    async def open_runs(self) -> list[str]:
        """Return the ids of the runs that are not finished, oldest first."""
        return await self._read(open_run_ids)

    async def counts(self) -> Counts:
        return await self._read(count_open)

    async def load(self, run_id: str) -> LoadedRun | None:
        """Load a run as an actor takes it up."""
        loaded = await self._read(partial(load, run_ids=[run_id]))
        return loaded[0] if loaded else None

    async def load_open(self) -> list[LoadedRun]:
        """Load every run that is not finished, oldest first."""
        return await self._read(load_open)

    async def _rows(self, statement: str, *place: str | int) -> list[Any]:
        def fetch(connection: sqlite3.Connection) -> list[Any]:
            return connection.execute(SQL[statement], place).fetchall()

        return await self._read(fetch)

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._in_transaction, work)

    def _in_transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._idle.get_nowait()
        try:
            connection.execute("BEGIN")
            try:
                return work(connection)
            finally:
                connection.execute("COMMIT")
        finally:
            self._idle.put(connection)
