"""A page of events anywhere in a long log, and a list of a thousand runs."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from typing import Protocol

from crewd.store import EventQuery, Page, Reads, RunFilter
from crewd_client.v1.run_service_pb2 import ListRunsRequest
from crewd_client.v1.run_stream_pb2 import ListEventsRequest
from tests.bench.history import a_log, store_finished, store_talkative
from tests.bench.place import a_daemon
from tests.bench.rows import MILLISECONDS, Row, at_most, middle, tenth_worst, told
from tests.bench.scale import Scale
from tests.support.desk import Desk

_PAGE = 100
_LARGEST_PAGE = 1000
_RUN_ID = "run_talks"


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
    scale.say(f"storing {events:,} events")
    first = await store_talkative(database, _RUN_ID, events)
    scene = _Scene(events, runs + 1, first, scale.pick(300, 50), scale.pick(50, 10))
    async with a_log(database):
        reads = Reads(database)
        try:
            rows = await scene.rows("read by the store", _StoreReads(reads))
        finally:
            await reads.close()
    for row in rows:
        yield row
    async with a_daemon(scale.folder, database=database) as desk:
        database.unlink()
        for row in await scene.rows("by a client, decoded", _Calls(desk)):
            yield row


class _Way(Protocol):
    """A way to what is stored. Each gives how many items it got."""

    is_served: bool

    async def events(self, after: int) -> int: ...
    async def runs(self, count: int) -> int: ...


@dataclass(frozen=True, slots=True)
class _Scene:
    events: int
    runs: int
    first: int
    looks: int
    lists: int

    async def rows(self, how: str, way: _Way) -> list[Row]:
        last = self.first + self.events - _PAGE
        places = [random.randrange(self.first, last) for _ in range(self.looks)]  # noqa: S311 - where to look
        pages = [await _timed(way.events(place), _PAGE) for place in places]
        cold = await _timed(way.runs(self.runs), self.runs)
        firsts = [await _timed(way.runs(_PAGE), _PAGE) for _ in range(self.lists)]
        whole = [await _timed(way.runs(self.runs), self.runs) for _ in range(self.lists)]
        named = f"page of {_PAGE} events anywhere in {self.events:,}, {how}, p50"
        listed = f"list of {self.runs:,} runs, {how}, p50"
        return [
            at_most(named, middle(pages), MILLISECONDS, 2),
            told("the same, p90", tenth_worst(pages), MILLISECONDS),
            # The daemon keeps what it has encoded: only its own answer has a limit.
            at_most(listed, middle(whole), MILLISECONDS, 5)
            if way.is_served
            else told(listed, middle(whole), MILLISECONDS),
            told("the same, for the first time", cold, MILLISECONDS),
            told(f"its first page of {_PAGE}", middle(firsts), MILLISECONDS),
        ]


async def _timed(read: Awaitable[int], wanted: int) -> float:
    start = time.perf_counter()
    found = await read
    taken = 1000 * (time.perf_counter() - start)
    assert found == wanted, f"{found} items, not {wanted}"
    return taken


class _StoreReads:
    is_served = False

    def __init__(self, reads: Reads) -> None:
        self._reads = reads

    async def events(self, after: int) -> int:
        query = EventQuery(run_id=_RUN_ID, after_sequence=after, limit=_PAGE)
        return len((await self._reads.list_events(query)).entries)

    async def runs(self, count: int) -> int:
        return len((await self._reads.list_runs(RunFilter(), Page(limit=count))).rows)


class _Calls:
    is_served = True

    def __init__(self, desk: Desk) -> None:
        self._runs = desk.client.runs

    async def events(self, after: int) -> int:
        request = ListEventsRequest(run_id=_RUN_ID, after_sequence=after, page_size=_PAGE)
        return len((await self._runs.ListEvents(request)).events)

    async def runs(self, count: int) -> int:
        found, request = 0, ListRunsRequest(page_size=min(count, _LARGEST_PAGE))
        while found < count:
            page = await self._runs.ListRuns(request)
            found += len(page.runs)
            request.page_token = page.next_page_token
            if not page.next_page_token:
                break
        return found
