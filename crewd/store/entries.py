"""What is handed to the log, and what the log hands on."""

from __future__ import annotations

from crewd.core.units import Instant
from crewd.core.values import record


@record
class Entry:
    """An encoded event. Its bytes are nobody's business here."""

    sequence: int
    run_sequence: int
    kind: str
    chatter: bool
    data: bytes


@record
class Request:
    """A write that was carried out, and what it was answered: it is not carried out twice."""

    id: str
    run_id: str
    method: str
    digest: bytes
    response: bytes
    time: Instant


@record
class Batch:
    """One append that is committed: what the feed is told."""

    run_id: str
    entries: tuple[Entry, ...]
    run_changed: bool
    task_ids: tuple[str, ...]
    ask_ids: tuple[str, ...]
    deleted: bool


class AppendFailed(Exception):  # noqa: N818 - named for what happened, as an event is
    """Nothing of this append is stored; its cause is chained. Other appends went through."""
