"""Filters, pages and keys: what the lists of the store are asked for and give back."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar

from crewd.core.errors import CrewdError, Reason
from crewd.core.model import Artifact, Ask, Run, Task
from crewd.core.states import RUN_TERMINAL
from crewd.core.units import Instant
from crewd.core.words import ArtifactKind, AskStatus, RunStatus, TaskStatus
from crewd.store.queries import SQL
from crewd.store.rows import ARTIFACT, ASK, RUN, TASK, to_json

T = TypeVar("T")

Cursor = tuple[str | int, ...]
"""Where a page ended. Opaque: give it back as it was given."""

_NEWEST: Final = (2**63 - 1, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    limit: int
    after: Cursor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed(Generic[T]):
    """A page of rows. `next` is None on the last one."""

    rows: list[T]
    next: Cursor | None
    as_of_sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs; what is empty does not narrow. Every label named must be there as given."""

    statuses: Collection[RunStatus] = ()
    cwd: str = ""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class AskFilter:
    run_id: str = ""
    statuses: Collection[AskStatus] = ()
    cwd: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactFilter:
    run_id: str
    task_id: str = ""
    kinds: Collection[ArtifactKind] = ()


class RunVersion(NamedTuple):
    """A run as it stood at one moment: what was made of it then is good until it changes."""

    id: str
    update_time: Instant


def list_runs(connection: sqlite3.Connection, which: RunFilter, page: Page) -> Listed[Run]:
    """Unfinished runs first, the newest first within both."""
    listed = list_run_versions(connection, which, page)
    ids = [version.id for version in listed.rows]
    found = connection.execute(SQL["runs"], (to_json(ids),)).fetchall()
    runs = {run.id: run for run in map(RUN.decode, found)}
    rows = [runs[run_id] for run_id in ids]
    return Listed(rows=rows, next=listed.next, as_of_sequence=listed.as_of_sequence)


def list_run_versions(
    connection: sqlite3.Connection, which: RunFilter, page: Page
) -> Listed[RunVersion]:
    """Return the same runs without what they are: for who has them already."""
    wanted = which.statuses or RunStatus
    settled = [status for status in wanted if status in RUN_TERMINAL]
    search = _Search(
        "run_keys_by_cwd" if which.cwd else "run_keys_by_status",
        ([s for s in wanted if s not in RUN_TERMINAL], settled),
        {"cwd": which.cwd, "labels": to_json(which.labels)},
    )
    ids, cursor = search.page(connection, page)
    found = connection.execute(SQL["run_versions"], (to_json(ids),)).fetchall()
    times: dict[str, Instant] = dict(found)
    return _listed(connection, [RunVersion(i, times[i]) for i in ids], cursor)


def list_asks(connection: sqlite3.Connection, which: AskFilter, page: Page) -> Listed[Ask]:
    """Open questions first, the newest first within both."""
    wanted = which.statuses or AskStatus
    search = _Search(
        "ask_keys_by_run" if which.run_id else "ask_keys_by_status",
        (
            [status for status in wanted if status is AskStatus.OPEN],
            [status for status in wanted if status is not AskStatus.OPEN],
        ),
        {"run_id": which.run_id, "cwd": which.cwd},
    )
    ids, cursor = search.page(connection, page)
    found = connection.execute(SQL["asks"], (to_json(ids),)).fetchall()
    asks = {ask.id: ask for ask in map(ASK.decode, found)}
    return _listed(connection, [asks[ask_id] for ask_id in ids], cursor)


def list_tasks(
    connection: sqlite3.Connection, run_id: str, page: Page, statuses: Collection[TaskStatus]
) -> Listed[Task]:
    """Tasks in the order of their positions."""
    (after,) = _checked(page.after, (int,)) if page.after is not None else (-1,)
    place = (run_id, after, to_json(list(statuses)), page.limit + 1)
    rows = connection.execute(SQL["tasks_page"], place).fetchall()
    tasks = [TASK.decode(row) for row in rows[: page.limit]]
    more = len(rows) > page.limit
    return _listed(connection, tasks, (tasks[-1].position,) if more else None)


def list_artifacts(
    connection: sqlite3.Connection, which: ArtifactFilter, page: Page
) -> Listed[Artifact]:
    """Artifacts in the order they were recorded."""
    (after,) = _checked(page.after, (int,)) if page.after is not None else (0,)
    statement = "artifacts_of_task" if which.task_id else "artifacts_of_run"
    place = {
        "run_id": which.run_id,
        "task_id": which.task_id,
        "kinds": to_json(list(which.kinds)),
        "after": after,
        "limit": page.limit + 1,
    }
    rows = connection.execute(SQL[statement], place).fetchall()
    shown = rows[: page.limit]
    cursor = (shown[-1][0],) if len(rows) > page.limit else None
    return _listed(connection, [ARTIFACT.decode(row[1:]) for row in shown], cursor)


def as_of_sequence(connection: sqlite3.Connection) -> int:
    """Return the last sequence of the log that this read can see."""
    next_sequence: int
    (next_sequence,) = connection.execute(SQL["next_sequence"]).fetchone()
    return next_sequence - 1


@dataclass(frozen=True, slots=True)
class _Search:
    """Keys by status, each status from an index of its own, merged newest first.

    The statuses of the first rank are exhausted before the second begins. A cursor is the rank,
    the creation and the id of the last row, so rows that come or go elsewhere move nothing.
    """

    statement: str
    ranks: tuple[Sequence[str], Sequence[str]]
    narrowing: Mapping[str, str]

    def page(self, connection: sqlite3.Connection, page: Page) -> tuple[list[str], Cursor | None]:
        first, time, key = _checked(page.after, (int, int, str)) if page.after else (0, *_NEWEST)
        found: list[tuple[int, int, str]] = []
        for rank, statuses in enumerate(self.ranks):
            if rank >= first and len(found) <= page.limit:
                start = (time, key) if rank == first else _NEWEST
                wanted = page.limit + 1 - len(found)
                keys = self._newest(connection, statuses, start, wanted)
                found += [(rank, *place) for place in keys]
        shown = found[: page.limit]
        return [key for _, _, key in shown], shown[-1] if len(found) > page.limit else None

    def _newest(
        self,
        connection: sqlite3.Connection,
        statuses: Sequence[str],
        start: tuple[int, str],
        count: int,
    ) -> list[tuple[int, str]]:
        time, key = start
        found: list[tuple[int, str]] = []
        for status in statuses:
            place = {**self.narrowing, "status": status, "time": time, "id": key, "limit": count}
            found += connection.execute(SQL[self.statement], place).fetchall()
        return sorted(found, reverse=True)[:count]


def _listed(connection: sqlite3.Connection, rows: list[T], cursor: Cursor | None) -> Listed[T]:
    return Listed(rows=rows, next=cursor, as_of_sequence=as_of_sequence(connection))


def _checked(cursor: Cursor, kinds: tuple[type, ...]) -> tuple[Any, ...]:
    """Refuse a cursor that some other list made up."""
    if tuple(map(type, cursor)) != kinds:
        raise CrewdError(
            Reason.PAGE_TOKEN_INVALID,
            "the page token is not one of this list: start at its first page",
        )
    return cursor
