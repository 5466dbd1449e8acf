"""Whole runs, as an actor takes them up."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, NamedTuple

from crewd.core.model import Ask, Attempt, Outbox, Run, Task
from crewd.core.states import RUN_TERMINAL
from crewd.core.words import RunStatus, TaskStatus
from crewd.store.queries import SQL
from crewd.store.rows import ASK, ATTEMPT, OUTBOX, RUN, TASK, to_json

_OPEN: Final = frozenset(RunStatus) - RUN_TERMINAL


class Counts(NamedTuple):
    open_runs: int
    open_asks: int


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A run and what of it can still matter.

    Tasks in the order of their positions; of each its latest attempt and any that has not ended;
    asks that are open or whose task may still ask again; messages the host may not have.
    """

    run: Run
    tasks: list[Task] = field(default_factory=list[Task])
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    asks: list[Ask] = field(default_factory=list[Ask])
    outbox: list[Outbox] = field(default_factory=list[Outbox])


def load(connection: sqlite3.Connection, run_ids: Sequence[str]) -> list[LoadedRun]:
    """Load the runs of these ids that are there, with a few statements for all of them."""
    wanted = to_json(run_ids)
    rows = connection.execute(SQL["runs"], (wanted,)).fetchall()
    loaded = {run.id: LoadedRun(run) for run in map(RUN.decode, rows)}
    found = to_json(list(loaded))
    for task in map(TASK.decode, connection.execute(SQL["tasks_of_runs"], (found,)).fetchall()):
        loaded[task.run_id].tasks.append(task)
    for run in loaded.values():
        run.tasks.sort(key=attrgetter("position"))
    rows = connection.execute(SQL["attempts_to_recover"], (found,)).fetchall()
    for attempt in map(ATTEMPT.decode, rows):
        loaded[attempt.run_id].attempts.append(attempt)
    rows = connection.execute(
        SQL["asks_to_recover"], (found, _words([TaskStatus.COMPLETED]))
    ).fetchall()
    for ask in map(ASK.decode, rows):
        loaded[ask.run_id].asks.append(ask)
    rows = connection.execute(SQL["outbox_to_recover"], (found,)).fetchall()
    for message in map(OUTBOX.decode, rows):
        loaded[message.run_id].outbox.append(message)
    return list(loaded.values())


def open_run_ids(connection: sqlite3.Connection) -> list[str]:
    """Return the ids of the runs that are not finished, oldest first."""
    rows = connection.execute(SQL["run_ids_by_status"], (_words(_OPEN),)).fetchall()
    return [run_id for (run_id,) in rows]


def load_open(connection: sqlite3.Connection) -> list[LoadedRun]:
    """Load every run that is not finished, oldest first."""
    return load(connection, open_run_ids(connection))


def count_open(connection: sqlite3.Connection) -> Counts:
    (runs,) = connection.execute(SQL["run_count"], (_words(_OPEN),)).fetchone()
    (asks,) = connection.execute(SQL["ask_count"]).fetchone()
    return Counts(runs, asks)


def _words(statuses: Iterable[str]) -> str:
    return to_json(list(statuses))
