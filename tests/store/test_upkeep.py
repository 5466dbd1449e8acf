from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from crewd.core.changes import Changes
from crewd.core.model import Outbox
from crewd.core.units import MINUTE, Instant
from crewd.core.words import OutboxKind, RunStatus
from crewd.store import AskFilter, Entry, EventQuery, Page, RunFilter
from crewd.store.db import WAL_LIMIT, open_writer
from crewd.store.group import Group, pack, pack_deletion
from crewd.store.upkeep import SLICE, Upkeep
from tests.store.samples import Store, a_run, a_task, an_ask, an_attempt, entries

TASKS = 700
EVENTS = 1200
DAY = 24 * 60 * MINUTE
MESSAGE = Outbox(run_id="run_a", task_id="t0", attempt=1, seq=1, kind=OutboxKind.TASK, body="{}")
EVERYTHING = Changes(
    run=a_run(status=RunStatus.COMPLETED),
    run_is_new=True,
    added_tasks=[a_task(position) for position in range(TASKS)],
    added_attempts=[an_attempt()],
    asks=[an_ask()],
    outbox=[MESSAGE],
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "crewd.db"


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(open_writer(path)[0]) as connection:
        yield connection


def write_everything(connection: sqlite3.Connection, *, delete_from: int = 0) -> None:
    events = [
        Entry(sequence=i, run_sequence=i, kind="k", chatter=False, data=b"x")
        for i in range(1, EVENTS + 1)
    ]
    parcel = pack("run_a", events, EVERYTHING)
    if delete_from:
        pack_deletion(parcel, delete_from)
    group = Group()
    group.add(parcel)
    connection.execute("BEGIN")
    group.write(connection)
    connection.execute("COMMIT")


def rows_left(path: Path) -> dict[str, int]:
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        counts = {
            name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]  # noqa: S608
            for (name,) in names
        }
    return {name: count for name, count in counts.items() if count and name != "meta"}


def test_a_deleted_run_goes_in_slices_and_its_last_event_stays(
    connection: sqlite3.Connection, path: Path
) -> None:
    write_everything(connection, delete_from=EVENTS)
    upkeep = Upkeep(connection, path.with_name("crewd.db-wal"))

    slices: list[int] = []
    before = connection.total_changes
    while upkeep.step():
        slices.append(connection.total_changes - before)
        before = connection.total_changes
    assert max(slices) <= SLICE
    assert rows_left(path) == {"event": 1}
    assert connection.execute("SELECT sequence FROM event").fetchall() == [(EVENTS,)]


def test_what_was_not_removed_is_removed_after_a_restart(
    connection: sqlite3.Connection, path: Path
) -> None:
    write_everything(connection, delete_from=EVENTS)
    Upkeep(connection, path.with_name("crewd.db-wal")).step()
    assert rows_left(path)["task"] == TASKS

    again = Upkeep(connection, path.with_name("crewd.db-wal"))
    while again.step():
        pass
    assert rows_left(path) == {"event": 1}


def test_free_pages_are_given_back(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("CREATE TABLE ballast (data BLOB)")
    connection.execute("INSERT INTO ballast VALUES (zeroblob(4000000))")
    write_everything(connection, delete_from=EVENTS)
    connection.execute("DELETE FROM ballast")
    upkeep = Upkeep(connection, path.with_name("crewd.db-wal"))
    steps = 0
    while upkeep.step():
        steps += 1

    assert steps < 20
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    assert free <= 256


def test_old_requests_are_purged_at_most_once_an_hour(
    connection: sqlite3.Connection, path: Path
) -> None:
    def ids() -> list[str]:
        rows = connection.execute("SELECT id FROM request ORDER BY time").fetchall()
        return [request_id for (request_id,) in rows]

    for number in range(3):
        place = (f"r{number}", "run_a", "CreateRun", b"", b"", number * MINUTE)
        connection.execute("INSERT INTO request VALUES (?, ?, ?, ?, ?, ?)", place)
    upkeep = Upkeep(connection, path.with_name("crewd.db-wal"))
    for minutes, left in ((1, ["r1", "r2"]), (60, ["r1", "r2"]), (61, [])):
        upkeep.request_stored(Instant(30 * DAY + minutes * MINUTE))
        while upkeep.step():
            pass
        assert ids() == left


def test_the_wal_stays_within_its_limit(connection: sqlite3.Connection, path: Path) -> None:
    wal = path.with_name("crewd.db-wal")
    upkeep = Upkeep(connection, wal)
    connection.execute("CREATE TABLE ballast (data BLOB)")
    sizes: list[int] = []
    for _ in range(60):
        connection.execute("INSERT INTO ballast VALUES (zeroblob(1000000))")
        upkeep.checkpoint()
        sizes.append(wal.stat().st_size)

    assert WAL_LIMIT < max(sizes) < WAL_LIMIT + 2_000_000
    assert sizes[-1] >= WAL_LIMIT


async def test_a_deleted_run_is_not_found_from_its_commit_on(store: Store) -> None:
    await store.log.append("run_a", entries(store.log, EVENTS), EVERYTHING)
    last = entries(store.log, kind="run_deleted")
    await store.log.append("run_a", last, Changes(delete_run=True))

    reads = store.reads
    assert store.batches[-1].deleted
    assert await reads.get_run("run_a") is None
    assert await reads.load("run_a") is None
    assert await reads.find_run_ids("run_") == []
    assert (await reads.list_runs(RunFilter(), Page(limit=9))).rows == []
    assert (await reads.list_tasks("run_a", Page(limit=9))).rows == []
    assert await reads.get_task("run_a", "t0") is None
    assert await reads.list_attempts("run_a", "t0") == []
    assert await reads.get_attempt("run_a", "t0") is None
    assert await reads.get_ask("ask_a") is None
    assert (await reads.list_asks(AskFilter(), Page(limit=9))).rows == []
    assert (await reads.list_asks(AskFilter(run_id="run_a"), Page(limit=9))).rows == []
    assert await reads.counts() == (0, 0)
    assert (await reads.list_events(EventQuery(run_id="run_a"))).entries == last


async def test_the_log_removes_deleted_runs_by_itself(path: Path) -> None:
    async with Store(path) as store, asyncio.timeout(20):
        await store.log.append("run_a", entries(store.log, EVENTS), EVERYTHING)
        last = entries(store.log, kind="run_deleted")
        await store.log.append("run_a", last, Changes(delete_run=True))
    async with Store(path) as store, asyncio.timeout(20):
        while rows_left(path) != {"event": 1}:
            await store.reads.counts()
