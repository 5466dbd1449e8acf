"""The streams of RunService that carry the log and the runs, and the log page by page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from crewd.core.model import Run
from crewd.rpc import convert
from crewd.rpc.calls import Context, Handler, required, stream, unary
from crewd.rpc.errors import draining, run_not_found
from crewd.rpc.event_cursor import (
    ENDING,
    OPENING,
    EventCursor,
    Start,
    check_reach,
    check_store,
)
from crewd.rpc.filters import event_kinds, matches_run, run_filter
from crewd.rpc.pages import RESPONSE_BYTES, Place, place_of
from crewd.rpc.ports import Wiring
from crewd.rpc.state_streams import PAUSE_SECONDS, Resource, StateStream
from crewd.rpc.wire import ITEMS_TAG, repeated
from crewd.runtime.feed import Watcher
from crewd.store import Entry, EventQuery
from crewd.v1 import run_stream_pb2 as pb
from crewd.v1.stream_pb2 import Heartbeat

LINGER_SECONDS: Final = 0.02
"""How long chatter may wait for more of it."""


class RunStreams:
    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._framing = _Framing()

    def handlers(self) -> dict[str, Handler]:
        return {
            "WatchRuns": stream(self._watch_runs, pb.WatchRunsRequest.FromString),
            "WatchRun": stream(self._watch_run, pb.WatchRunRequest.FromString),
            "ListEvents": unary(self._list_events, pb.ListEventsRequest.FromString),
        }

    async def _watch_runs(self, request: pb.WatchRunsRequest, context: Context) -> None:
        which = run_filter(request.filter)
        resource: Resource[Run] = Resource(
            list=partial(self._wiring.reads.list_runs, which),
            get=self._wiring.reads.get_run,
            matches=partial(matches_run, which=which),
            run_id=lambda run: run.id,
            encode=lambda run: convert.run(run).SerializeToString(),
            pause_seconds=PAUSE_SECONDS,
        )
        with self._wiring.feed.watch_runs() as changes:
            await StateStream(self._wiring, context, changes, resource).run()

    async def _watch_run(self, request: pb.WatchRunRequest, context: Context) -> None:
        wiring = self._wiring
        kinds = event_kinds(request.kinds)
        run_id = required("run_id", request.run_id)
        start = Start(run_id, request.after_sequence, request.store_id)
        check_store(start, wiring.identity.store_id)
        woken_for = kinds | OPENING | ENDING if kinds else kinds
        with wiring.feed.watch(run_id, woken_for) as watcher, wiring.presence.wakes(watcher.news):
            run = await wiring.reads.get_run(run_id)
            if run is None:
                raise run_not_found(run_id)
            cursor = EventCursor(wiring.reads, watcher, run, start, kinds)
            first = await cursor.read()
            check_reach(start, cursor.as_of_sequence, wiring.identity.store_id)
            framing = _Framing() if kinds else self._framing
            follow = _Follow(_Line(wiring, context, framing), watcher, cursor)
            await follow.run(first, stop_when_finished=request.stop_when_finished)

    async def _list_events(self, request: pb.ListEventsRequest, _context: Context) -> bytes:
        wiring = self._wiring
        place = place_of(request, request)
        kinds = event_kinds(request.kinds)
        run_id = required("run_id", request.run_id)
        start = Start(run_id, request.after_sequence, request.store_id)
        check_store(start, wiring.identity.store_id)
        if await wiring.reads.get_run(run_id) is None:
            raise run_not_found(run_id)
        entries, rest = await self._page(start, place, kinds)
        rest.store_id = wiring.identity.store_id
        return _items(entries) + rest.SerializeToString()

    async def _page(
        self, start: Start, place: Place, kinds: frozenset[str]
    ) -> tuple[Sequence[Entry], pb.ListEventsResponse]:
        """Read on until something was found or the log has ended."""
        after = place.position(start.after_sequence)
        while True:
            page = await self._wiring.reads.list_events(
                EventQuery(
                    run_id=start.run_id,
                    after_sequence=after,
                    limit=place.size,
                    max_bytes=RESPONSE_BYTES,
                    kinds=kinds,
                )
            )
            check_reach(start, page.as_of_sequence, self._wiring.identity.store_id)
            after = page.searched_sequence
            if page.entries or page.at_end:
                break
        return page.entries, pb.ListEventsResponse(
            next_page_token=place.token(None if page.at_end else (after,)),
            as_of_sequence=page.as_of_sequence,
        )


class _Framing:
    """Remembers the last batch: those who keep up with a run send the same ones.

    A batch is known by its ends and its length, so one of these serves only unfiltered watches.
    """

    def __init__(self) -> None:
        self._key = (0, 0, 0)
        self._framed = b""

    def of(self, entries: Sequence[Entry]) -> bytes:
        if not entries:
            return b""
        key = (entries[0].sequence, entries[-1].sequence, len(entries))
        if key != self._key:
            self._key, self._framed = key, _items(entries)
        return self._framed


class _Line(NamedTuple):
    """One call, and what it needs to be answered."""

    wiring: Wiring
    context: Context
    framing: _Framing


class _Follow:
    """One WatchRun: sends what the cursor reads, and what there is to say in between."""

    def __init__(self, line: _Line, watcher: Watcher, cursor: EventCursor) -> None:
        self._wiring = line.wiring
        self._context = line.context
        self._framing = line.framing
        self._watcher = watcher
        self._cursor = cursor
        self._store_id = line.wiring.identity.store_id
        self._caught_up = False

    async def run(self, entries: Sequence[Entry], *, stop_when_finished: bool) -> None:
        """Serve until the client, the run or the daemon ends."""
        cursor, presence = self._cursor, self._wiring.presence
        while presence.draining is None:
            await self._send(entries)
            if cursor.at_end:
                if cursor.deleted or (stop_when_finished and cursor.finished):
                    return
                await self._wait()
            entries = await cursor.read()
        await self._context.write(self._first(pb.WatchRunResponse(draining=presence.draining)))
        raise draining()

    async def _send(self, entries: Sequence[Entry]) -> None:
        reached = self._cursor.at_end and not self._caught_up
        self._caught_up = self._caught_up or reached
        if entries or reached:
            rest = self._first(pb.WatchRunResponse(caught_up=reached))
            await self._context.write(self._framing.of(entries) + rest)

    def _first(self, response: pb.WatchRunResponse) -> bytes:
        """Encode what stands beside the events; the first response tells the store."""
        response.store_id, self._store_id = self._store_id, ""
        return response.SerializeToString()

    async def _wait(self) -> None:
        """Return when there is something to send; until then beat."""
        while not await self._watcher.news.wait(self._wiring.heartbeat_seconds):
            sequence = max(self._cursor.position, self._wiring.feed.last_sequence)
            beat = pb.WatchRunResponse(heartbeat=Heartbeat(sequence=sequence))
            await self._context.write(self._first(beat))
        if self._wiring.presence.draining is None:
            await self._watcher.linger(LINGER_SECONDS)


def _items(entries: Sequence[Entry]) -> bytes:
    return repeated(ITEMS_TAG, (entry.data for entry in entries))
