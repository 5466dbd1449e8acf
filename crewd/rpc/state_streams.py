"""WatchRuns and WatchAsks: first all that matches, then each whole whenever it changes.

Both responses have the same shape, so one stream serves both: items, `synced`, `draining`,
removed ids, `heartbeat`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from crewd.rpc.calls import Context
from crewd.rpc.errors import draining
from crewd.rpc.pages import RESPONSE_BYTES
from crewd.rpc.ports import Wiring
from crewd.rpc.wire import ITEMS_TAG, repeated
from crewd.runtime.feed import Changes
from crewd.store import Listed, Page
from crewd.v1.run_stream_pb2 import WatchRunsResponse
from crewd.v1.stream_pb2 import Heartbeat

PART: Final = 100
"""The most items in a response."""
PAUSE_SECONDS: Final = 0.05
"""Between two looks at what changes all the time."""


class Row(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def last_sequence(self) -> int: ...


R = TypeVar("R", bound=Row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource(Generic[R]):
    """What is followed."""

    list: Callable[[Page], Awaitable[Listed[R]]]
    get: Callable[[str], Awaitable[R | None]]
    matches: Callable[[R], bool]
    run_id: Callable[[R], str]
    """The run whose deletion takes it along."""
    encode: Callable[[R], bytes]
    pause_seconds: float = 0.0


class StateStream(Generic[R]):
    """One call. `changes` was registered before anything is read."""

    def __init__(
        self, wiring: Wiring, context: Context, changes: Changes, resource: Resource[R]
    ) -> None:
        self._wiring = wiring
        self._context = context
        self._changes = changes
        self._resource = resource
        self._sent: dict[str, str] = {}
        """What the client has, and the run it belongs to."""
        self._as_of = 0

    async def run(self) -> None:
        """Serve until the client or the daemon goes away."""
        presence = self._wiring.presence
        with presence.wakes(self._changes.news):
            await self._send_all()
            await self._send_changes()
            await self._write(WatchRunsResponse(synced=True))
            while presence.draining is None:
                rung = await self._changes.news.wait(self._wiring.heartbeat_seconds)
                if not rung:
                    await self._write(WatchRunsResponse(heartbeat=self._heartbeat()))
                elif await self._send_changes() and self._resource.pause_seconds:
                    await asyncio.sleep(self._resource.pause_seconds)
            await self._write(WatchRunsResponse(draining=presence.draining))
        raise draining()

    def _heartbeat(self) -> Heartbeat:
        return Heartbeat(sequence=max(self._as_of, self._wiring.feed.last_sequence))

    async def _send_all(self) -> None:
        after = None
        while True:
            listed = await self._resource.list(Page(limit=PART, after=after))
            self._as_of = self._as_of or listed.as_of_sequence
            await self._send(listed.rows)
            after = listed.next
            if after is None or self._wiring.presence.draining is not None:
                return

    async def _send_changes(self) -> bool:
        """Send what has changed since the last look; say whether there was anything to send."""
        ids = self._changes.take()
        gone = set(self._changes.take_deleted_runs())
        removed = {row_id: None for row_id, run_id in self._sent.items() if run_id in gone}
        for start in range(0, len(ids), PART):
            rows: list[R] = []
            for row_id in ids[start : start + PART]:
                row = await self._resource.get(row_id)
                if row is not None and self._resource.matches(row):
                    rows.append(row)
                elif row_id in self._sent:
                    removed[row_id] = None
            await self._send(rows)
        for row_id in removed:
            del self._sent[row_id]
        if removed:
            await self._write(WatchRunsResponse(removed_run_ids=removed))
        return bool(ids or removed)

    async def _send(self, rows: Iterable[R]) -> None:
        """Send rows in responses that are not too large."""
        part: list[bytes] = []
        size = 0
        for row in rows:
            data = self._resource.encode(row)
            if part and size + len(data) > RESPONSE_BYTES:
                await self._context.write(repeated(ITEMS_TAG, part))
                part, size = [], 0
            part.append(data)
            size += len(data)
            self._sent[row.id] = self._resource.run_id(row)
        if part:
            await self._context.write(repeated(ITEMS_TAG, part))

    async def _write(self, response: WatchRunsResponse) -> None:
        await self._context.write(response.SerializeToString())
