"""A page of events anywhere in a long log, and a list of a thousand runs."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from crewd.store import EventQuery, Page, Reads, RunFilter
from crewd_client import list_runs
from crewd_client.v1.run_stream_pb2 import ListEventsRequest
from tests.bench.history import a_log, store_finished, store_talkative
from tests.bench.place import a_daemon
from tests.bench.rows import MILLISECONDS, Row, at_most, middle, tenth_worst, told
from tests.bench.scale import Scale
from tests.support.desk import Desk

_PAGE = 100
_RUN_ID = "run_talks"

Read = Callable[[], Awaitable[object]]


async def finished_runs(scale: Scale) -> tuple[str, int]:
    """Return the file of a database with finished runs, made at its first use, and how many."""
    runs = scale.pick(1000, 100)
    database = scale.folder / "finished.db"
    if not database.exists():
        scale.say(f"storing {runs} finished runs")
        await store_finished(database, runs)
    return str(database), runs


async def measure(scale: Scale) -> AsyncIterator[Row]:
    source, runs = await finished_runs(scale)
    database = scale.folder / "long.db"
    shutil.copyfile(source, database)
    events = scale.pick(1_000_000, 20_000)
    scale.say(f"storing {events} events")
    first = await store_talkative(database, _RUN_ID, events)
    places = [random.randrange(first, first + events - _PAGE) for _ in range(scale.pick(300, 50))]  # noqa: S311 - where to look
    lists = scale.pick(50, 10)
    named = f"page of {_PAGE} events anywhere in {events:,}"
    listed = f"list of {runs + 1} runs"
    async with a_log(database):
        reads = Reads(database)
        try:
            pages = [await _timed(_read_page(reads, place)) for place in places]
            lists_read = [await _timed(_read_runs(reads, runs + 1)) for _ in range(lists)]
        finally:
            await reads.close()
    yield at_most(f"{named}, read by the store, p50", middle(pages), MILLISECONDS, 2)
    yield told("the same, p90", tenth_worst(pages), MILLISECONDS)
    yield at_most(f"{listed}, read by the store, p50", middle(lists_read), MILLISECONDS, 5)
    async with a_daemon(scale.folder, database=database) as desk:
        database.unlink()
        pages = [await _timed(_call_page(desk, place)) for place in places]
        lists_read = [await _timed(_call_runs(desk, runs + 1)) for _ in range(lists)]
    yield at_most(f"{named}, by a client, decoded, p50", middle(pages), MILLISECONDS, 2)
    yield told("the same, p90", tenth_worst(pages), MILLISECONDS)
    yield at_most(f"{listed}, by a client, decoded, p50", middle(lists_read), MILLISECONDS, 5)


async def _timed(read: Read) -> float:
    start = time.perf_counter()
    await read()
    return 1000 * (time.perf_counter() - start)


def _read_page(reads: Reads, after: int) -> Read:
    async def read() -> None:
        query = EventQuery(run_id=_RUN_ID, after_sequence=after, limit=_PAGE)
        page = await reads.list_events(query)
        assert len(page.entries) == _PAGE

    return read


def _read_runs(reads: Reads, count: int) -> Read:
    async def read() -> None:
        listed = await reads.list_runs(RunFilter(), Page(limit=count))
        assert len(listed.rows) == count

    return read


def _call_page(desk: Desk, after: int) -> Read:
    async def read() -> None:
        request = ListEventsRequest(run_id=_RUN_ID, after_sequence=after, page_size=_PAGE)
        page = await desk.client.runs.ListEvents(request)
        assert len(page.events) == _PAGE

    return read


def _call_runs(desk: Desk, count: int) -> Read:
    async def read() -> None:
        runs = [run async for run in list_runs(desk.client, page_size=1000)]
        assert len(runs) == count

    return read
