"""What the writer does between groups: checkpoints, and removing what is not needed any more."""

from __future__ import annotations

import sqlite3
from collections import deque
from pathlib import Path
from typing import Final

from crewd.core.units import EPOCH, MINUTE, Instant
from crewd.store.db import WAL_LIMIT
from crewd.store.queries import SQL

SLICE: Final = 500

_REQUESTS_KEPT: Final = 30 * 24 * 60 * MINUTE
_PURGE_EVERY: Final = 60 * MINUTE
_CHECKPOINT_STEP: Final = 1024 * 1024
_FREE_PAGES: Final = 256
_TABLES: Final = (
    "event",
    "outbox",
    "artifact",
    "ask",
    "attempt",
    "task_spec",
    "task",
    "run_spec",
    "run",
)


class Upkeep:
    """Small pieces of work on the writer's connection. Nothing here wakes up by itself."""

    def __init__(self, connection: sqlite3.Connection, wal: Path) -> None:
        self._connection = connection
        self._wal = wal
        self._checkpoint_over = WAL_LIMIT
        self._deleted: deque[tuple[str, int]] = deque(
            connection.execute(SQL["deleted_runs"]).fetchall()
        )
        self._purge_before = EPOCH
        self._purge_due = EPOCH
        self._vacuum = bool(self._deleted)

    def run_deleted(self, run_id: str, first_kept: int) -> None:
        self._deleted.append((run_id, first_kept))

    def request_stored(self, time: Instant) -> None:
        """Tell the time by the requests: without a new one there is nothing to purge for."""
        if time >= self._purge_due:
            self._purge_due = Instant(time + _PURGE_EVERY)
            self._purge_before = Instant(time - _REQUESTS_KEPT)

    def checkpoint(self) -> None:
        """Copy the WAL into the database once it has outgrown its limit.

        The WAL starts anew with the next commit, unless somebody reads from it just then: it goes
        on growing, and only after another step is it worth the next try.
        """
        size = self._wal.stat().st_size
        if size <= WAL_LIMIT:
            self._checkpoint_over = WAL_LIMIT
        elif size > self._checkpoint_over:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            self._checkpoint_over = size + _CHECKPOINT_STEP

    def step(self) -> bool:
        """Do one piece of work that waits; return False when there was none."""
        if self._deleted:
            self._delete_slice(*self._deleted[0])
        elif self._purge_before:
            self._purge_slice()
        elif self._vacuum:
            self._vacuum_slice()
        else:
            return False
        return True

    def _delete_slice(self, run_id: str, first_kept: int) -> None:
        place = {"run_id": run_id, "kept": first_kept, "limit": SLICE}
        for table in _TABLES:
            if self._connection.execute(SQL[f"slice_{table}"], place).rowcount and table != "run":
                return
        self._deleted.popleft()
        self._vacuum = True

    def _purge_slice(self) -> None:
        rows = self._connection.execute(SQL["purge_requests"], (self._purge_before, SLICE)).rowcount
        if rows < SLICE:
            self._purge_before = EPOCH

    def _vacuum_slice(self) -> None:
        """Give free pages back to the file system, but for some to grow into."""
        (free,) = self._connection.execute("PRAGMA freelist_count").fetchone()
        if free <= _FREE_PAGES:
            self._vacuum = False
        else:
            # `execute` would stop after the first page: the statement has steps but no columns.
            self._connection.executescript(f"PRAGMA incremental_vacuum({_FREE_PAGES})")
