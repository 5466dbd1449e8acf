"""A place in the log of one run, and what comes after it: from the store, then from the feed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from crewd.core.errors import CrewdError, Reason
from crewd.core.model import Run
from crewd.core.states import RUN_TERMINAL
from crewd.rpc.wire import KIB
from crewd.runtime.feed import Watcher
from crewd.store import Entry, EventQuery, Reads

BATCH_EVENTS: Final = 256
BATCH_BYTES: Final = 512 * KIB
OPENING: Final = frozenset({"run_resumed"})
ENDING: Final = frozenset({"run_finished", "run_deleted"})
"""The kinds that say whether a run is over, whatever else is asked for."""


@dataclass(frozen=True, slots=True)
class Start:
    """Where to begin, and in whose log."""

    run_id: str
    after_sequence: int
    store_id: str
    """Empty: not told."""


def check_store(start: Start, own: str) -> None:
    """Raise CURSOR_EXPIRED for a cursor of another store."""
    if start.store_id not in ("", own):
        raise _expired("the cursor belongs to another store", own)


def check_reach(start: Start, as_of_sequence: int, store_id: str) -> None:
    """Raise CURSOR_EXPIRED for a cursor beyond the log."""
    if start.after_sequence > as_of_sequence:
        what = f"sequence {start.after_sequence} lies beyond the log's end"
        raise _expired(what, store_id, last_sequence=str(as_of_sequence))


class EventCursor:
    """Reads on and on, without a hole and without a repeat.

    `watcher` was registered before `run` was read. Whether the run is over is decided by what was
    published: the row as it was read, and the events after it.
    """

    def __init__(
        self, reads: Reads, watcher: Watcher, run: Run, start: Start, kinds: frozenset[str]
    ) -> None:
        self.position = start.after_sequence
        """Everything up to here was looked at."""
        self.at_end = False
        """Whether nothing was published after it when it was read last."""
        self.finished = run.status in RUN_TERMINAL
        """Whether the run is over; counts at the end."""
        self.deleted = False
        """Whether nothing can follow."""
        self.as_of_sequence = 0
        """Where the log ended when the store was read last."""
        self._reads = reads
        self._watcher = watcher
        self._run_id = run.id
        self._told_until = run.last_sequence
        self._kinds = kinds
        self._searched = kinds | OPENING | ENDING if kinds else kinds
        self._in_store = True

    async def read(self) -> Sequence[Entry]:
        """Return the next events of the kinds asked for: at most 256, and 512 KiB."""
        found = None if self._in_store else self._from_tail()
        if found is None:
            found = await self._from_store()
        for entry in found:
            if entry.sequence > self._told_until and entry.kind in OPENING | ENDING:
                self.finished = entry.kind in ENDING
                self.deleted = entry.kind == "run_deleted"
        if not self._kinds:
            return found
        return [entry for entry in found if entry.kind in self._kinds]

    async def _from_store(self) -> Sequence[Entry]:
        page = await self._reads.list_events(
            EventQuery(
                run_id=self._run_id,
                after_sequence=self.position,
                limit=BATCH_EVENTS,
                max_bytes=BATCH_BYTES,
                kinds=self._searched,
            )
        )
        self.at_end = page.at_end
        self.as_of_sequence = page.as_of_sequence
        ended_at = page.as_of_sequence if page.at_end else 0
        self.position = max(self.position, page.searched_sequence, ended_at)
        self._in_store = not page.at_end and not self._watcher.reaches(self.position)
        return page.entries

    def _from_tail(self) -> Sequence[Entry] | None:
        """Return what the feed has, or None when the store must be asked."""
        tail = self._watcher.take(self.position, BATCH_EVENTS)
        if tail is None:
            return None
        fitting = _fitting(tail)
        self.at_end = len(fitting) < BATCH_EVENTS and fitting is tail
        if fitting:
            self.position = fitting[-1].sequence
        return fitting


def _fitting(entries: Sequence[Entry]) -> Sequence[Entry]:
    room = BATCH_BYTES
    for count, entry in enumerate(entries):
        room -= len(entry.data)
        if room < 0 and count:
            return entries[:count]
    return entries


def _expired(what: str, store_id: str, last_sequence: str = "") -> CrewdError:
    return CrewdError(
        Reason.CURSOR_EXPIRED,
        f"{what}: read the run and watch from its last_sequence",
        store_id=store_id,
        last_sequence=last_sequence,
    )
