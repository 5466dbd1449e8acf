"""The thread that writes: it takes all that waits, commits it in one transaction, and tells."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Event
from typing import Final

from crewd.core.units import Instant
from crewd.store.entries import AppendFailed, Batch
from crewd.store.group import Group, Parcel
from crewd.store.upkeep import Upkeep

DISK_LOW: Final = "disk_low"
DISK_FULL: Final = "disk_full"
LOCKED: Final = "database_locked"

_GROUP_APPENDS: Final = 1024
_GROUPS_BEFORE_UPKEEP: Final = 32
_FIRST_DELAY: Final = 0.1
_LONGEST_DELAY: Final = 2.0
_PROBE_BYTES: Final = 256 * 1024
_BROKEN: Final = frozenset(
    {
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
    }
)


@dataclass(slots=True)
class Append:
    """One append on its way: its rows, what the feed is told, and who waits for it."""

    parcel: Parcel
    batch: Batch
    future: asyncio.Future[None]
    request_time: Instant | None = None
    first_kept: int | None = None
    """Set when the run is deleted: its first event that stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Whom the writer tells what it did. Called on the writer's thread."""

    committed: Callable[[Sequence[Append]], object]
    failed: Callable[[Append, AppendFailed], object]
    paused: Callable[[str], object]


class Writer:
    """Owns the writing connection from `run` to its end."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, listener: Listener, *, reserve: int
    ) -> None:
        self._connection = connection
        self._folder = path.parent
        self._listener = listener
        self._reserve = reserve
        self._upkeep = Upkeep(connection, path.with_name(f"{path.name}-wal"))
        self._queue: SimpleQueue[Append | None] = SimpleQueue()
        self._stopping = Event()
        self._stopped = False
        self._paused = ""
        self._groups_since_upkeep = 0

    def put(self, append: Append) -> None:
        self._queue.put(append)

    def stop(self) -> None:
        """Finish what is queued, once: while the disk is full it is given up."""
        self._queue.put(None)
        self._stopping.set()

    def run(self) -> None:
        """Write until stopped. An error that comes out of here leaves the rest unwritten."""
        try:
            self._rest()
            while appends := self._next_appends():
                self._store(appends)
                self._groups_since_upkeep += 1
                self._rest()
        finally:
            self._connection.close()

    def _next_appends(self) -> list[Append]:
        """Wait for an append and take all that are queued; nothing once the writer is stopped."""
        appends: list[Append] = []
        item = None if self._stopped else self._queue.get()
        while item is not None:
            appends.append(item)
            if len(appends) == _GROUP_APPENDS or self._queue.empty():
                return appends
            item = self._queue.get()
        self._stopped = True
        return appends

    def _store(self, appends: Sequence[Append]) -> None:
        """Get the appends committed, however long it takes; those that cannot be are failed."""
        delay = _FIRST_DELAY
        while reason := self._try(appends):
            self._pause(reason)
            if self._stopping.wait(delay):
                if self._try(appends):
                    for append in appends:
                        self._listener.failed(append, AppendFailed(f"closed while {reason}"))
                return
            delay = min(2 * delay, _LONGEST_DELAY)
        self._pause("")

    def _pause(self, reason: str) -> None:
        if reason != self._paused:
            self._paused = reason
            self._listener.paused(reason)

    def _try(self, appends: Sequence[Append]) -> str:
        """Return "" when the appends are settled, or what stands in their way for now."""
        if free_bytes(self._folder) < self._reserve:
            return DISK_LOW
        try:
            self._commit(appends)
        except (sqlite3.Error, ValueError, OverflowError) as error:
            self._roll_back()
            if reason := self._obstacle(error):
                return reason
            self._settle_one_by_one(appends, error)
        else:
            self._listener.committed(appends)
            self._note_upkeep(appends)
        return ""

    def _commit(self, appends: Sequence[Append]) -> None:
        group = Group()
        for append in appends:
            group.add(append.parcel)
        self._connection.execute("BEGIN IMMEDIATE")
        group.write(self._connection)
        self._connection.execute("COMMIT")

    def _roll_back(self) -> None:
        # Some errors end the transaction by themselves.
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _settle_one_by_one(self, appends: Sequence[Append], error: Exception) -> None:
        if len(appends) > 1:
            for append in appends:
                self._store([append])
            return
        failure = AppendFailed(f"{appends[0].batch.run_id}: {error}")
        failure.__cause__ = error
        self._listener.failed(appends[0], failure)

    def _obstacle(self, error: Exception) -> str:
        """Return what keeps everybody from writing for now; "" when the append is to blame.

        An error of the file itself is raised: nobody knows what is on the disk.
        """
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return DISK_FULL
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            return LOCKED
        if code in _BROKEN:
            if _has_room(self._folder):
                raise error
            return DISK_FULL
        return ""

    def _note_upkeep(self, appends: Sequence[Append]) -> None:
        for append in appends:
            if append.first_kept is not None:
                self._upkeep.run_deleted(append.batch.run_id, append.first_kept)
            if append.request_time is not None:
                self._upkeep.request_stored(append.request_time)

    def _rest(self) -> None:
        """Do what waits between groups: all of it when nobody else does, else a piece at times."""
        try:
            self._upkeep.checkpoint()
            while self._queue.empty() or self._groups_since_upkeep >= _GROUPS_BEFORE_UPKEEP:
                self._groups_since_upkeep = 0
                if not self._upkeep.step():
                    return
                self._upkeep.checkpoint()
        except sqlite3.Error as error:
            self._roll_back()
            if not self._obstacle(error):
                raise


def free_bytes(folder: Path) -> int:
    """Return what an ordinary user may still write there."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def _has_room(folder: Path) -> bool:
    """Try it: SQLite reports a quota, or a full disk under its shared memory, as any I/O error."""
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(_PROBE_BYTES))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            return False
        raise
    return True
