"""The log: what a run did becomes durable here, and is published only then.

The loop's side. Appends are encoded at once, queued, committed in groups by the writer's thread,
and told on the loop in the order of their sequences: first to `on_commit`, then to who waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Final

from crewd.core.changes import Changes
from crewd.store.db import open_writer
from crewd.store.entries import AppendFailed, Batch, Entry, Request
from crewd.store.group import pack, pack_deletion, pack_request
from crewd.store.queries import SQL
from crewd.store.writer import Append, Listener, Writer, free_bytes

RESERVE: Final = 8 * 1024 * 1024
"""Below so many free bytes nothing is written, so that SQLite keeps room to finish."""


class Log:
    """Made, used and closed on the event loop's thread. Close readers of the store before it."""

    def __init__(
        self,
        path: Path,
        *,
        on_commit: Callable[[Sequence[Batch]], None],
        on_state: Callable[[str], None],
        on_fatal: Callable[[BaseException], None],
        reserve: int = RESERVE,
    ) -> None:
        """Open or create the database, migrate it, and start the writer.

        `on_state` hears each change of `paused`. `on_fatal` hears that nothing can be stored any
        more: appends on their way are neither done nor failed, and the daemon must end.
        """
        self.paused = ""
        """Why nothing is committed at the moment: the disk is low or full; "" when it goes on."""
        self._folder = path.parent
        self.reserve = reserve
        self._on_commit = on_commit
        self._on_state = on_state
        self._on_fatal = on_fatal
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._closed = False
        connection, self.schema_version = open_writer(path)
        self.store_id: str
        (self.store_id,) = connection.execute(SQL["store_id"]).fetchone()
        self._next_sequence: int
        (self._next_sequence,) = connection.execute(SQL["next_sequence"]).fetchone()
        self._appended = self._next_sequence - 1
        post = self._loop.call_soon_threadsafe
        listener = Listener(
            committed=lambda appends: post(self._publish, appends),
            failed=lambda append, error: post(self._refuse, append, error),
            paused=lambda reason: post(self._set_paused, reason),
        )
        self._writer = Writer(connection, path, listener, reserve=reserve)
        self._thread = Thread(target=self._write, name="store-writer", daemon=True)
        self._thread.start()

    @property
    def next_sequence(self) -> int:
        """The sequence the next event will get."""
        return self._next_sequence

    def can_admit(self) -> bool:
        """Say whether new work should be taken on: it could be stored now."""
        return not self.paused and self.free_bytes() >= self.reserve

    def free_bytes(self) -> int:
        """Give the space that is left on the disk; work is taken on from `reserve` upwards."""
        return free_bytes(self._folder)

    def take_sequences(self, count: int) -> int:
        """Return the first of so many sequences in a row.

        They are to be appended before the next are taken; those that are not stay a gap.
        """
        first = self._next_sequence
        self._next_sequence += count
        return first

    def append(
        self,
        run_id: str,
        entries: Sequence[Entry],
        changes: Changes,
        requests: Sequence[Request] = (),
    ) -> asyncio.Future[None]:
        """Encode everything now; the future is done when it is durable and published.

        Raises AppendFailed, here or from the future, when nothing of it was stored.
        """
        if self._closed or self._ended.is_set():
            message = "the log is closed"
            raise AppendFailed(message)
        self._check_order(entries)
        batch = _batch(run_id, entries, changes)
        try:
            parcel = pack(run_id, batch.entries, changes)
        except (ValueError, TypeError) as error:
            message = f"{run_id}: {error}"
            raise AppendFailed(message) from error
        future = self._loop.create_future()
        append = Append(parcel, batch, future)
        for request in requests:
            pack_request(parcel, request)
            append.request_time = request.time
        if changes.delete_run:
            append.first_kept = entries[-1].sequence if entries else self._next_sequence
            pack_deletion(parcel, append.first_kept)
        self._writer.put(append)
        return future

    async def close(self) -> None:
        """Commit what was appended and end the writer. While the disk is full it is given up."""
        if not self._closed:
            self._closed = True
            self._writer.stop()
        await self._ended.wait()
        self._thread.join()

    def _check_order(self, entries: Sequence[Entry]) -> None:
        if not entries:
            return
        if not self._appended < entries[0].sequence <= entries[-1].sequence < self._next_sequence:
            message = f"sequence {entries[0].sequence} was not taken, or comes late"
            raise ValueError(message)
        self._appended = entries[-1].sequence

    def _publish(self, appends: Sequence[Append]) -> None:
        try:
            self._on_commit([append.batch for append in appends])
        finally:
            for append in appends:
                if not append.future.done():
                    append.future.set_result(None)

    def _refuse(self, append: Append, error: AppendFailed) -> None:
        if not append.future.done():
            append.future.set_exception(error)

    def _set_paused(self, reason: str) -> None:
        self.paused = reason
        self._on_state(reason)

    def _write(self) -> None:
        with ExitStack() as stack:
            stack.push(self._report_end)
            self._writer.run()

    def _report_end(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> bool:
        self._loop.call_soon_threadsafe(self._end, error)
        return True

    def _end(self, error: BaseException | None) -> None:
        self._ended.set()
        if error is not None:
            self._on_fatal(error)


def _batch(run_id: str, entries: Sequence[Entry], changes: Changes) -> Batch:
    return Batch(
        run_id=run_id,
        entries=tuple(entries),
        run_changed=changes.run is not None,
        task_ids=tuple([task.id for task in (*changes.added_tasks, *changes.tasks)]),
        ask_ids=tuple([ask.id for ask in changes.asks]),
        deleted=changes.delete_run,
    )
