"""Durable events: 64 producers on the log alone, and on a bare writer's thread beside it."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

from crewd.core.changes import Changes
from crewd.core.model import Run, Task
from crewd.core.spec import RunSpec, TaskSpec
from crewd.core.words import RunStatus, TaskStatus
from crewd.store import Entry, Log
from tests.bench.history import a_log
from tests.bench.rows import PER_SECOND, TIMES, Row, at_least, middle, told
from tests.bench.scale import Scale

PRODUCERS = 64
_FEW = 4
_DATA = b"x" * 284
_SECONDS = 120.0
_TABLE = """
CREATE TABLE event (
    run_id TEXT, sequence INTEGER PRIMARY KEY, run_sequence INTEGER, kind TEXT, chatter INTEGER,
    data BLOB
)
"""
_INSERT = "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)"

Produce = Callable[[int, int], Awaitable[object]]
"""Makes some events durable: the producer's number, and the append's."""


async def measure(scale: Scale) -> AsyncIterator[Row]:
    each = scale.pick(200, 50)
    folder = scale.folder / "append"
    folder.mkdir()
    bare: list[float] = []
    ours: list[float] = []
    four: list[float] = []
    rows: list[float] = []
    async with asyncio.timeout(_SECONDS), a_log(folder / "ours.db") as log:
        with_rows = await _with_rows(log)
        writer = _BareWriter(folder / "bare.db")
        try:
            for n in range(scale.pick(7, 2)):
                bare.append(await _rate(writer.produce, each, n))
                ours.append(await _rate(_events_alone(log, 1), each, n))
                four.append(_FEW * await _rate(_events_alone(log, _FEW), each, n))
                rows.append(await _rate(with_rows, each, n))
        finally:
            writer.close()
    named = f"durable events, {PRODUCERS} producers, one event an append"
    yield at_least(named, middle(ours), PER_SECOND, 50_000)
    yield told("the same on a bare writer's thread", middle(bare), PER_SECOND)
    ratio = middle([us / it for us, it in zip(ours, bare, strict=True)])
    yield told("the log against the bare writer's thread", ratio, TIMES)
    yield told(f"{_FEW} events an append", middle(four), PER_SECOND)
    yield told("one event an append, with its run's row and a task's row", middle(rows), PER_SECOND)


async def _rate(produce: Produce, each: int, round_: int) -> float:
    async def work(producer: int) -> None:
        for n in range(each):
            await produce(producer, round_ * each + n + 1)

    start = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for producer in range(PRODUCERS):
            group.create_task(work(producer))
    return PRODUCERS * each / (time.perf_counter() - start)


def _entries(log: Log, count: int, number: int) -> list[Entry]:
    first = log.take_sequences(count)
    return [
        Entry(
            sequence=first + n,
            run_sequence=number * count + n,
            kind="message_posted",
            chatter=True,
            data=_DATA,
        )
        for n in range(count)
    ]


def _events_alone(log: Log, count: int) -> Produce:
    async def produce(producer: int, number: int) -> None:
        await log.append(f"run_{producer:02}", _entries(log, count, number), Changes())

    return produce


async def _with_rows(log: Log) -> Produce:
    """Give what appends as an actor does: the rows that changed go with the event."""
    runs: list[Run] = []
    tasks: list[Task] = []
    for producer in range(PRODUCERS):
        run_id = f"run_rows{producer:02}"
        run = Run(id=run_id, spec=RunSpec(cwd="/"), status=RunStatus.RUNNING)
        spec = TaskSpec(id="t", command=("true",))
        task = Task(run_id=run_id, id="t", position=0, spec=spec, status=TaskStatus.RUNNING)
        await log.append(run_id, [], Changes(run=run, run_is_new=True, added_tasks=[task]))
        runs.append(run)
        tasks.append(task)

    async def produce(producer: int, number: int) -> None:
        run, task = runs[producer], tasks[producer]
        entries = _entries(log, 1, number)
        run.last_sequence = task.last_sequence = entries[-1].sequence
        await log.append(run.id, entries, Changes(run=run, tasks=[task]))

    return produce


class _BareWriter:
    """A queue, a thread that commits all that waits, and futures: nothing else."""

    def __init__(self, database: Path) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[tuple[tuple[object, ...], asyncio.Future[None]] | None] = (
            SimpleQueue()
        )
        self._sequence = 0
        self._thread = Thread(target=self._write, args=(database,))
        self._thread.start()

    async def produce(self, producer: int, number: int) -> None:
        future = self._loop.create_future()
        self._sequence += 1
        place = (f"run_{producer:02}", self._sequence, number, "message_posted", 1, _DATA)
        self._queue.put((place, future))
        await future

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _write(self, database: Path) -> None:
        connection = sqlite3.connect(database, isolation_level=None)
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=4096"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        connection.execute(_TABLE)
        while (item := self._queue.get()) is not None:
            items = [item]
            while not self._queue.empty():
                more = self._queue.get()
                if more is None:
                    self._queue.put(None)
                    break
                items.append(more)
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(_INSERT, [place for place, _ in items])
            connection.execute("COMMIT")
            self._loop.call_soon_threadsafe(_resolve, [future for _, future in items])
        connection.close()


def _resolve(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        future.set_result(None)
