"""Rows on their way into the database: encoded on the loop, merged and written by the writer."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final, NamedTuple

from crewd.core.changes import Changes
from crewd.core.model import Attempt, Run, Task
from crewd.store.entries import Entry, Request
from crewd.store.queries import SQL
from crewd.store.rows import ARTIFACT, ASK, ATTEMPT, OUTBOX, RUN, TASK, Values, to_json

Key = tuple[str | int, ...]

_TABLES: Final = ("run", "task", "attempt")
_STATEMENTS: Final = (
    "update_run_status",
    "insert_run_spec",
    "insert_task_spec",
    "upsert_ask",
    "insert_artifact",
    "insert_outbox",
    "take_outbox",
    "insert_event",
    "insert_request",
    "mark_run_deleted",
)
"""After the tables, in this order: what is taken from the outbox may be new in it."""


class RowMissingError(sqlite3.IntegrityError):
    """A row that was to be updated is not there."""


class Put(NamedTuple):
    """The new value of a row. `fixed` is there when the row is new."""

    table: str
    key: Key
    fixed: Values | None
    body: Values


class Parcel(NamedTuple):
    """One append as it is written: rows to merge, statements to run, events of the run."""

    run_id: str
    entries: Sequence[Entry]
    puts: list[Put]
    statements: list[tuple[str, Values]]


class Group:
    """What one transaction writes. A row that several appends changed is written once."""

    def __init__(self) -> None:
        self._new: dict[str, dict[Key, Put]] = {table: {} for table in _TABLES}
        self._changed: dict[str, dict[Key, Put]] = {table: {} for table in _TABLES}
        self._statements: dict[str, list[Values]] = {name: [] for name in _STATEMENTS}
        self._last_sequence = 0

    def add(self, parcel: Parcel) -> None:
        """Add an append later than all that are in the group."""
        for put in parcel.puts:
            self._put(put)
        for name, values in parcel.statements:
            self._statements[name].append(values)
        if parcel.entries:
            run_id = parcel.run_id
            self._statements["insert_event"] += [
                (run_id, e.sequence, e.run_sequence, e.kind, 1 if e.chatter else 0, e.data)
                for e in parcel.entries
            ]
            self._last_sequence = parcel.entries[-1].sequence

    def write(self, connection: sqlite3.Connection) -> None:
        """Write the group inside the transaction that is open."""
        for table in _TABLES:
            rows = [put.fixed + put.body for put in self._new[table].values() if put.fixed]
            if rows:
                connection.executemany(SQL[f"insert_{table}"], rows)
            rows = [put.body + put.key for put in self._changed[table].values()]
            if rows:
                updated = connection.executemany(SQL[f"update_{table}"], rows).rowcount
                if updated != len(rows):
                    message = f"{len(rows) - updated} rows to update are not in {table}"
                    raise RowMissingError(message)
        for name, rows in self._statements.items():
            if rows:
                connection.executemany(SQL[name], rows)
        if self._last_sequence:
            connection.execute(SQL["set_next_sequence"], (self._last_sequence + 1,))

    def _put(self, put: Put) -> None:
        new = self._new[put.table]
        if put.fixed is not None:
            new[put.key] = put
        elif put.key in new:
            new[put.key] = put._replace(fixed=new[put.key].fixed)
        else:
            self._changed[put.table][put.key] = put


def pack(run_id: str, entries: Sequence[Entry], changes: Changes) -> Parcel:
    """Turn rows, which go on changing, into columns, which do not."""
    parcel = Parcel(run_id, entries, [], [])
    if changes.run is not None:
        _pack_run(parcel, changes.run, is_new=changes.run_is_new)
    for task in changes.added_tasks:
        _pack_task(parcel, task)
    for task in changes.tasks:
        parcel.puts.append(Put("task", (task.run_id, task.id), None, TASK.body(task)))
    for attempt in changes.added_attempts:
        parcel.puts.append(_put_attempt(attempt, ATTEMPT.fixed(attempt)))
    for attempt in changes.attempts:
        parcel.puts.append(_put_attempt(attempt, None))
    for artifact in changes.artifacts:
        values = ARTIFACT.fixed(artifact) + ARTIFACT.body(artifact)
        parcel.statements.append(("insert_artifact", values))
    if changes.asks or changes.outbox or changes.outbox_taken:
        _pack_messages(parcel, changes)
    return parcel


def pack_request(parcel: Parcel, request: Request) -> None:
    values = (
        request.id,
        request.run_id,
        request.method,
        request.digest,
        request.response,
        request.time,
    )
    parcel.statements.append(("insert_request", values))


def pack_deletion(parcel: Parcel, first_kept: int) -> None:
    """Mark the run deleted; of its events only those from `first_kept` on stay."""
    parcel.statements.append(("mark_run_deleted", (first_kept, parcel.run_id)))


def _pack_run(parcel: Parcel, run: Run, *, is_new: bool) -> None:
    fixed: Values | None = None
    if is_new:
        fixed = (run.spec.cwd, to_json(run.spec.labels), *RUN.fixed(run))
        parcel.statements.append(("insert_run_spec", (run.id, to_json(run.spec))))
    else:
        parcel.statements.append(("update_run_status", (run.status.value, run.id)))
    parcel.puts.append(Put("run", (run.id,), fixed, RUN.body(run)))


def _pack_task(parcel: Parcel, task: Task) -> None:
    parcel.puts.append(Put("task", (task.run_id, task.id), TASK.fixed(task), TASK.body(task)))
    parcel.statements.append(("insert_task_spec", (task.run_id, task.id, to_json(task.spec))))


def _put_attempt(attempt: Attempt, fixed: Values | None) -> Put:
    key = (attempt.run_id, attempt.task_id, attempt.number)
    return Put("attempt", key, fixed, ATTEMPT.body(attempt))


def _pack_messages(parcel: Parcel, changes: Changes) -> None:
    add = parcel.statements.append
    for ask in changes.asks:
        add(("upsert_ask", ASK.fixed(ask) + ASK.body(ask)))
    for message in changes.outbox:
        add(("insert_outbox", OUTBOX.fixed(message) + OUTBOX.body(message)))
    for task_id, attempt, seq in changes.outbox_taken:
        add(("take_outbox", (parcel.run_id, task_id, attempt, seq)))
