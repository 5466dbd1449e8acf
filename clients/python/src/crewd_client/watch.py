"""Streams that resume by themselves when the daemon is restarted or goes away for a while."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Iterator,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, NoReturn, TypeVar, cast

import grpc

from crewd_client._connect import backoff, pause_after
from crewd_client.client import Client
from crewd_client.errors import CrewdError, SequenceError, UnavailableError
from crewd_client.v1.ask_pb2 import Ask
from crewd_client.v1.ask_service_pb2 import AskFilter, WatchAsksRequest
from crewd_client.v1.event_pb2 import Event
from crewd_client.v1.run_artifact_pb2 import ReadArtifactRequest, ReadArtifactResponse
from crewd_client.v1.run_pb2 import Run, RunFilter
from crewd_client.v1.run_stream_pb2 import (
    ReadOutputRequest,
    ReadOutputResponse,
    WatchRunRequest,
    WatchRunResponse,
    WatchRunsRequest,
)

# Heartbeats come every 15 s.
SILENCE = timedelta(seconds=45)

R = TypeVar("R")
T = TypeVar("T", Run, Ask)


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """What is new about the things watched: each item whole, and the ids that are out.

    `complete`: the items are all there are now; true for the first, and after each reconnect.
    """

    items: tuple[T, ...]
    removed_ids: tuple[str, ...]
    complete: bool


async def watch_run(  # noqa: PLR0913  # the request's fields, each with its default
    client: Client,
    run_id: str,
    after_sequence: int = 0,
    *,
    store_id: str = "",
    stop_when_finished: bool = True,
    kinds: Sequence[str] = (),
) -> AsyncGenerator[Event, None]:
    """Give every event of a run after the cursor, each once, over any restart of the daemon.

    Without `kinds` it is proven that no event is missing or comes twice, else `SequenceError`. Ends
    when the run is over, if asked to. A cursor that was kept goes with the `store_id` of
    `Client.server`; `CursorExpiredError`: it is of another store, read the state and begin there.
    """
    cursor = _Cursor(after_sequence, store_id, whole=not kinds)
    link = _Link(client)
    while True:
        request = WatchRunRequest(
            run_id=run_id,
            after_sequence=cursor.sequence,
            store_id=cursor.store_id,
            stop_when_finished=stop_when_finished,
            kinds=kinds,
        )
        async with aclosing(link.responses(client.runs.WatchRun(request))) as responses:
            async for response in responses:
                for event in cursor.take(response):
                    yield event
                link.note_draining(response.HasField("draining"))
        if link.ended and stop_when_finished:
            return
        await link.pause()


async def watch_runs(
    client: Client, run_filter: RunFilter | None = None
) -> AsyncGenerator[Change[Run], None]:
    """Give the matching runs, then every change of them. After a reconnect all anew."""
    link = _Link(client)
    known = _Known[Run]()
    while True:
        request = WatchRunsRequest(filter=run_filter)
        async with aclosing(link.responses(client.runs.WatchRuns(request))) as responses:
            async for response in responses:
                for change in known.take(
                    response.runs, response.removed_run_ids, synced=response.synced
                ):
                    yield change
                link.note_draining(response.HasField("draining"))
        known.begin_anew()
        await link.pause()


async def watch_asks(
    client: Client, ask_filter: AskFilter | None = None
) -> AsyncGenerator[Change[Ask], None]:
    """Give the matching asks, then every change of them. After a reconnect all anew."""
    link = _Link(client)
    known = _Known[Ask]()
    while True:
        request = WatchAsksRequest(filter=ask_filter)
        async with aclosing(link.responses(client.asks.WatchAsks(request))) as responses:
            async for response in responses:
                for change in known.take(
                    response.asks, response.removed_ask_ids, synced=response.synced
                ):
                    yield change
                link.note_draining(response.HasField("draining"))
        known.begin_anew()
        await link.pause()


async def read_output(
    client: Client, request: ReadOutputRequest
) -> AsyncGenerator[ReadOutputResponse, None]:
    """Give an attempt's output stretch by stretch, going on where it broke off."""
    link = _Link(client, silence=None)
    request = ReadOutputRequest.FromString(request.SerializeToString())
    end = None
    while True:
        async with aclosing(link.responses(client.runs.ReadOutput(request))) as responses:
            async for response in responses:
                yield response
                if request.limit and end is None:
                    end = response.offset + request.limit
                request.attempt, request.offset = response.attempt, response.next_offset
                if response.eof or response.next_offset == end:
                    return
                if end is not None:
                    request.limit = end - response.next_offset
        if link.ended and not request.follow:
            return
        await link.pause()


async def read_artifact(
    client: Client, request: ReadArtifactRequest
) -> AsyncGenerator[ReadArtifactResponse, None]:
    """Give an artifact stretch by stretch, going on where it broke off.

    The daemon compares the digest only of what it sends in one piece. After a break that is up to
    who reads: `Artifact.sha256`.
    """
    link = _Link(client, silence=None)
    request = ReadArtifactRequest.FromString(request.SerializeToString())
    end = None
    while not link.ended:
        async with aclosing(link.responses(client.runs.ReadArtifact(request))) as responses:
            async for response in responses:
                yield response
                if request.limit and end is None:
                    end = response.offset + request.limit
                if response.artifact.id:
                    # A later one of the same name is another.
                    request.artifact_id = response.artifact.id
                    request.ClearField("name")
                request.offset = response.next_offset
                if response.eof or response.next_offset == end:
                    return
                if end is not None:
                    request.limit = end - response.next_offset
        if not link.ended:
            await link.pause()


class _Link:
    """Tells a stream that broke, and is to be called again, from one that ended."""

    def __init__(self, client: Client, silence: timedelta | None = SILENCE) -> None:
        self.ended = False
        self._client = client
        self._silence = None if silence is None else silence.total_seconds()
        self._away = False
        self._draining = False
        self._wait = 0.0
        self._waits = backoff()

    async def responses(self, stream: AsyncIterable[R]) -> AsyncGenerator[R, None]:
        self.ended = self._draining = False
        iterator = cast("AsyncGenerator[R, None]", stream)
        async with aclosing(iterator):
            try:
                while True:
                    async with asyncio.timeout(self._silence):
                        response = await anext(iterator)
                    self._is_back()
                    yield response
            except StopAsyncIteration:
                self.ended = not self._draining
                self._wait = next(self._waits)
            except TimeoutError:
                self._broke(_silent())
            except CrewdError as error:
                self._broke(error)

    def note_draining(self, draining: bool) -> None:  # noqa: FBT001
        self._draining = self._draining or draining

    async def pause(self) -> None:
        self._tell(away=True)
        await asyncio.sleep(self._wait)
        self._client.refresh()

    def _is_back(self) -> None:
        self._waits = backoff()
        self._tell(away=False)

    def _broke(self, error: CrewdError) -> None:
        again = isinstance(error, UnavailableError) or error.code is grpc.StatusCode.CANCELLED
        if not again or not self._client.connection.answered:
            raise error
        self._wait = pause_after(error, self._waits)

    def _tell(self, *, away: bool) -> None:
        if self._client.on_away is not None and away != self._away:
            self._client.on_away(away)
        self._away = away


class _Cursor:
    def __init__(self, sequence: int, store_id: str, *, whole: bool) -> None:
        self.sequence = sequence
        self.store_id = store_id
        self._whole = whole
        self._next = 1 if sequence == 0 else None

    def take(self, response: WatchRunResponse) -> Iterator[Event]:
        self.store_id = response.store_id or self.store_id
        for event in response.events:
            self._check(event)
            # Set before the event is handed out: a cursor says what was handled.
            self.sequence = event.sequence
            yield event
        if response.HasField("heartbeat"):
            self.sequence = max(self.sequence, response.heartbeat.sequence)

    def _check(self, event: Event) -> None:
        if event.sequence <= self.sequence:
            _refuse(event, f"came after {self.sequence}")
        if self._whole and self._next is not None and event.run_sequence != self._next:
            _refuse(event, f"is number {event.run_sequence} of its run, not {self._next}")
        self._next = event.run_sequence + 1


class _Known(Generic[T]):
    """What was told so far, to tell what is gone after a reconnect."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._fresh: dict[str, T] | None = {}

    def begin_anew(self) -> None:
        self._fresh = {}

    def take(
        self, items: Sequence[T], removed: Sequence[str], *, synced: bool
    ) -> Iterator[Change[T]]:
        if self._fresh is None:
            self._ids.update(item.id for item in items)
            self._ids.difference_update(removed)
            if items or removed:
                yield Change(tuple(items), tuple(removed), complete=False)
            return
        self._fresh |= {item.id: item for item in items}
        for gone in removed:
            self._fresh.pop(gone, None)
        if synced:
            whole, self._fresh = self._fresh, None
            lost = tuple(sorted(self._ids - whole.keys()))
            self._ids = set(whole)
            yield Change(tuple(whole.values()), lost, complete=True)


def _refuse(event: Event, problem: str) -> NoReturn:
    message = f"{event.run_id}: event {event.sequence} {problem}"
    raise SequenceError(code=grpc.StatusCode.DATA_LOSS, reason="SEQUENCE_BROKEN", message=message)


def _silent() -> UnavailableError:
    return UnavailableError(
        code=grpc.StatusCode.UNAVAILABLE, message="nothing is heard of the daemon"
    )
