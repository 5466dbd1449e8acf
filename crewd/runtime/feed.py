"""The event feed: what was committed reaches those who watch, and nobody waits for them.

The log publishes each batch once, on the loop. A watcher keeps a cursor, not a queue: it takes
what is new from a short tail that all watchers of its run share, and reads from the store what is
older than the tail. So one that does not read holds up nobody and costs nothing.

Register first, read the store then: what is committed in between is in the tail.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Collection, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from math import inf
from typing import Final

from crewd.store import Batch, Entry

TAIL_BYTES: Final = 2 * 1024 * 1024
"""What the tail of a watched run holds at most."""
RUSH_COUNT: Final = 64
"""So many events waiting are worth a message of their own, whatever they are."""
_ENTRY_OVERHEAD: Final = 200


class Bell:
    """Wakes the one that waits. Rung while nobody waits, the next wait returns at once."""

    def __init__(self) -> None:
        self.rung = False
        self._waiter: asyncio.Future[None] | None = None

    def ring(self) -> None:
        self.rung = True
        self._wake()

    async def wait(self, seconds: float) -> bool:
        """Wait so long at most; say whether it was rung, and forget that it was."""
        if not self.rung:
            loop = asyncio.get_running_loop()
            self._waiter = loop.create_future()
            timer = loop.call_later(seconds, self._wake) if seconds < inf else None
            try:
                await self._waiter
            finally:
                if timer is not None:
                    timer.cancel()
                self._waiter = None
        rung, self.rung = self.rung, False
        return rung

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Watcher:
    """One that follows the events of a run."""

    def __init__(self, channel: _Channel, kinds: frozenset[str]) -> None:
        self.news = Bell()
        """Rung when there is something after what was taken last."""
        self._rush = Bell()
        self._channel = channel
        self._kinds = kinds
        self._unread = 0

    def take(self, after: int, limit: int) -> Sequence[Entry] | None:
        """Return the next events of any kind; None if the tail does not reach back so far."""
        self._unread = 0
        self._rush.rung = False
        return self._channel.after(after, limit)

    def reaches(self, after: int) -> bool:
        """Say whether the tail is known to have all events after this one."""
        return 0 < self._channel.floor <= after

    async def linger(self, seconds: float) -> None:
        """Wait for more, unless what there is should go at once."""
        await self._rush.wait(seconds)

    def tell(self, entries: Sequence[Entry]) -> None:
        """Hear of new events."""
        wanted = self._wanted(entries) if self._kinds else entries
        if not wanted:
            return
        self._unread += len(wanted)
        self.news.ring()
        if self._unread >= RUSH_COUNT or not all(entry.chatter for entry in wanted):
            self._rush.ring()

    def _wanted(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        return [entry for entry in entries if entry.kind in self._kinds]


class Changes:
    """Ids of what has changed since they were taken last; each once, however often it did."""

    def __init__(self) -> None:
        self.news = Bell()
        self._ids: dict[str, None] = {}
        self._deleted_runs: dict[str, None] = {}

    def take(self) -> list[str]:
        """Return the ids, the one that changed first at the front."""
        ids = list(self._ids)
        self._ids.clear()
        return ids

    def take_deleted_runs(self) -> list[str]:
        run_ids = list(self._deleted_runs)
        self._deleted_runs.clear()
        return run_ids

    def tell(self, ids: Sequence[str], deleted_run: str = "") -> None:
        self._ids.update(dict.fromkeys(ids))
        if deleted_run:
            self._deleted_runs[deleted_run] = None
        if ids or deleted_run:
            self.news.ring()


class Feed:
    """Where the log publishes, and those who watch register."""

    def __init__(self, *, tail_bytes: int = TAIL_BYTES) -> None:
        self.last_sequence = 0
        """The last one published since the daemon started."""
        self._tail_bytes = tail_bytes
        self._channels: dict[str, _Channel] = {}
        self._runs: dict[Changes, None] = {}
        self._asks: dict[Changes, None] = {}
        self._tasks: dict[str, dict[Changes, None]] = {}
        self._bells: dict[str, dict[Bell, None]] = {}
        """Of those who wait for one ask, by its id."""

    def publish(self, batches: Sequence[Batch]) -> None:
        """Take what was committed, in the order of its sequences."""
        for batch in batches:
            self._publish(batch)

    @contextmanager
    def watch(self, run_id: str, kinds: Collection[str] = ()) -> Generator[Watcher]:
        """Follow the events of a run, woken only for these kinds if any are named."""
        channel = self._channels.get(run_id)
        if channel is None:
            channel = self._channels[run_id] = _Channel(self._tail_bytes, self.last_sequence)
        watcher = Watcher(channel, frozenset(kinds))
        channel.watchers[watcher] = None
        try:
            yield watcher
        finally:
            del channel.watchers[watcher]
            if not channel.watchers:
                self._channels.pop(run_id, None)

    def watch_runs(self) -> AbstractContextManager[Changes]:
        """Hear of every run that changes."""
        return _registered(self._runs)

    def watch_asks(self) -> AbstractContextManager[Changes]:
        """Hear of every ask that changes, and of runs deleted with theirs."""
        return _registered(self._asks)

    @contextmanager
    def watch_runs_and_asks(self) -> Generator[Changes]:
        """Hear of both by one bell."""
        with self.watch_runs() as changes:
            self._asks[changes] = None
            try:
                yield changes
            finally:
                del self._asks[changes]

    @contextmanager
    def watch_ask(self, ask_id: str) -> Generator[Bell]:
        """Have a bell rung whenever this one ask changes."""
        bell = Bell()
        bells = self._bells.setdefault(ask_id, {})
        bells[bell] = None
        try:
            yield bell
        finally:
            del bells[bell]
            if not bells:
                self._bells.pop(ask_id, None)

    @contextmanager
    def watch_tasks(self, run_id: str) -> Generator[Changes]:
        """Hear of every task of a run that changes, its latest attempt included."""
        watching = self._tasks.setdefault(run_id, {})
        try:
            with _registered(watching) as changes:
                yield changes
        finally:
            if not watching:
                self._tasks.pop(run_id, None)

    def _publish(self, batch: Batch) -> None:
        run_id = batch.run_id
        if batch.entries:
            self.last_sequence = batch.entries[-1].sequence
            channel = self._channels.get(run_id)
            if channel is not None:
                channel.publish(batch.entries)
        if self._runs and (batch.run_changed or batch.deleted):
            for changes in self._runs:
                changes.tell((run_id,))
        if batch.ask_ids or batch.deleted:
            self._publish_asks(batch.ask_ids, run_id if batch.deleted else "")
        for changes in self._tasks.get(run_id, ()):
            changes.tell(batch.task_ids, run_id if batch.deleted else "")

    def _publish_asks(self, ask_ids: Sequence[str], deleted_run: str) -> None:
        for changes in self._asks:
            changes.tell(ask_ids, deleted_run)
        for ask_id in ask_ids if self._bells else ():
            for bell in self._bells.get(ask_id, ()):
                bell.ring()


class _Channel:
    """The tail of a run that is watched, and who watches it."""

    def __init__(self, tail_bytes: int, floor: int) -> None:
        self.watchers: dict[Watcher, None] = {}
        self.floor = floor
        """What was published after it is here; 0 when the daemon has just started."""
        self._tail_bytes = tail_bytes
        self._sequences: list[int] = []
        self._entries: list[Entry] = []
        self._size = 0

    def publish(self, entries: Sequence[Entry]) -> None:
        self._entries.extend(entries)
        for entry in entries:
            self._sequences.append(entry.sequence)
            self._size += len(entry.data) + _ENTRY_OVERHEAD
        if self._size > self._tail_bytes:
            self._drop_to(self._tail_bytes * 3 // 4)
        for watcher in self.watchers:
            watcher.tell(entries)

    def after(self, sequence: int, limit: int) -> Sequence[Entry] | None:
        if sequence < self.floor:
            return None
        start = bisect_right(self._sequences, sequence)
        return self._entries[start : start + limit]

    def _drop_to(self, size: int) -> None:
        count = 0
        while self._size > size:
            self._size -= len(self._entries[count].data) + _ENTRY_OVERHEAD
            count += 1
        self.floor = self._sequences[count - 1]
        del self._sequences[:count]
        del self._entries[:count]


@contextmanager
def _registered(watching: dict[Changes, None]) -> Generator[Changes]:
    changes = Changes()
    watching[changes] = None
    try:
        yield changes
    finally:
        del watching[changes]
