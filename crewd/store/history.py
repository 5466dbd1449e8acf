"""Events of a run, a page at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from crewd.store.entries import Entry
from crewd.store.listing import as_of_sequence
from crewd.store.queries import SQL
from crewd.store.rows import to_json

_SEARCHED_AT_MOST: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class EventQuery:
    """Events of a run after a sequence, of these kinds if any are named.

    At most `limit`, and no more than `max_bytes` of data but for a first event that is larger.
    """

    run_id: str
    after_sequence: int = 0
    limit: int = 256
    max_bytes: int = 512 * 1024
    kinds: Collection[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    entries: list[Entry]
    searched_sequence: int
    """The cursor for the next page: everything up to it was looked at."""
    at_end: bool
    """Nothing was committed after it when this was read."""
    as_of_sequence: int


def list_events(connection: sqlite3.Connection, query: EventQuery) -> EventPage:
    """Read one page. Looking for rare kinds, a page may be empty and not at the end."""
    after = max(query.after_sequence, _first_kept(connection, query.run_id) - 1)
    last = max(last_sequence(connection, query.run_id), after)
    if query.kinds:
        end = _window_end(connection, query.run_id, after)
        place = (query.run_id, after, end, to_json(list(query.kinds)), query.limit)
        rows = connection.execute(SQL["events_of_kinds"], place)
    else:
        end = last
        rows = connection.execute(SQL["events"], (query.run_id, after, query.limit))
    entries, is_cut = _take(rows, query.max_bytes)
    searched = entries[-1].sequence if is_cut or len(entries) == query.limit else end
    return EventPage(
        entries=entries,
        searched_sequence=searched,
        at_end=searched == last,
        as_of_sequence=as_of_sequence(connection),
    )


def last_sequence(connection: sqlite3.Connection, run_id: str) -> int:
    """Return the sequence of the run's last event, 0 when it has none."""
    (last,) = connection.execute(SQL["last_sequence"], (run_id,)).fetchone()
    return last or 0


def _first_kept(connection: sqlite3.Connection, run_id: str) -> int:
    """Return where the log of a deleted run begins, whatever is not removed yet."""
    row = connection.execute(SQL["first_kept_sequence"], (run_id,)).fetchone()
    return row[0] if row is not None else 0


def _window_end(connection: sqlite3.Connection, run_id: str, after: int) -> int:
    place = (run_id, after, _SEARCHED_AT_MOST)
    (end,) = connection.execute(SQL["events_window_end"], place).fetchone()
    return after if end is None else end


def _take(rows: sqlite3.Cursor, max_bytes: int) -> tuple[list[Entry], bool]:
    """Take entries until they are too many bytes, and say whether some were left."""
    entries: list[Entry] = []
    with closing(rows):
        for sequence, run_sequence, kind, chatter, data in rows:
            max_bytes -= len(data)
            if entries and max_bytes < 0:
                return entries, True
            entries.append(
                Entry(
                    sequence=sequence,
                    run_sequence=run_sequence,
                    kind=kind,
                    chatter=bool(chatter),
                    data=data,
                )
            )
    return entries, False
