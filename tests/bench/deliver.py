"""Delivered events: ten watchers in another process than the server, which keep the bytes as bytes.

What they get is counted by its length: each event has the same.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from crewd_client.v1.run_stream_pb2 import WatchRunRequest, WatchRunResponse
from tests.bench.broadcast import DATA, RUN_ID, TOKEN
from tests.bench.place import ROOT
from tests.bench.rows import PER_SECOND, Row, at_least, middle, told
from tests.bench.scale import Scale

WATCHERS = 10
_LARGE, _SMALL = 256, 64
_SECONDS = 120.0
_METADATA = (("authorization", f"Bearer {TOKEN}"),)
# A connection of its own for each, as of ten programs.
_OPTIONS = (("grpc.use_local_subchannel_pool", 1), ("grpc.default_authority", "localhost"))
_FRAMED = 1 + 2 + len(DATA)
"""A tag, a length of two bytes, the event."""
_BESIDE = 100
"""More than the store's id and `caught_up` take."""


@dataclass(frozen=True, slots=True)
class _Rates:
    live: float
    replayed: float


async def measure(scale: Scale) -> AsyncIterator[Row]:
    events = scale.pick(300, 50) * _LARGE
    rounds = scale.pick(3, 1)
    large = [await _round(scale.folder, events // _LARGE, _LARGE) for _ in range(rounds)]
    small = [await _round(scale.folder, events // _SMALL, _SMALL) for _ in range(rounds)]
    yield at_least(
        f"delivered events, {WATCHERS} watchers, {_LARGE} events an append",
        middle([rates.live for rates in large]),
        PER_SECOND,
        300_000,
    )
    yield told(f"{_SMALL} events an append", middle([r.live for r in small]), PER_SECOND)
    yield told(
        "read again from the first event on", middle([r.replayed for r in large]), PER_SECOND
    )


async def _round(folder: Path, appends: int, size: int) -> _Rates:
    events = appends * size
    async with asyncio.timeout(_SECONDS), AsyncExitStack() as stack:
        place = Path(tempfile.mkdtemp(prefix="b-", dir=folder))
        server = await stack.enter_async_context(_a_server(place, appends, size))
        assert server.stdin is not None
        target = f"unix:{place}/s/crewd.sock"
        channels = [
            await stack.enter_async_context(grpc.aio.insecure_channel(target, _OPTIONS))
            for _ in range(WATCHERS)
        ]
        watchers = [_Watcher(channel) for channel in channels]
        await asyncio.gather(*(watcher.caught_up.wait() for watcher in watchers))
        start = time.perf_counter()
        server.stdin.write(b"go\n")
        live = await _rate(watchers, events, start)
        start = time.perf_counter()
        replayed = await _rate([_Watcher(channel) for channel in channels], events, start)
    return _Rates(live, replayed)


async def _rate(watchers: list[_Watcher], events: int, start: float) -> float:
    await asyncio.gather(*(watcher.ended for watcher in watchers))
    rate = WATCHERS * events / (time.perf_counter() - start)
    for watcher in watchers:
        beside = watcher.received - (events + 1) * _FRAMED
        assert 0 <= beside < _BESIDE, f"{beside} bytes too many of {events} events"
    return rate


class _Watcher:
    """One stream, to its end."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.received = 0
        self.caught_up = asyncio.Event()
        self.ended = asyncio.ensure_future(self._watch(channel))

    async def _watch(self, channel: Any) -> None:  # noqa: ANN401 - see below
        # Any: a method without a deserializer gives bytes, which its type does not say.
        method = channel.unary_stream(
            "/crewd.v1.RunService/WatchRun", WatchRunRequest.SerializeToString
        )
        request = WatchRunRequest(run_id=RUN_ID, stop_when_finished=True)
        async for response in method(request, metadata=_METADATA):
            if not self.caught_up.is_set():
                assert WatchRunResponse.FromString(response).caught_up or self.received == 0
                self.caught_up.set()
            self.received += len(response)


@asynccontextmanager
async def _a_server(place: Path, appends: int, size: int) -> AsyncGenerator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.bench.broadcast",
        str(place),
        str(appends),
        str(size),
        cwd=ROOT,
        stdin=PIPE,
        stdout=PIPE,
    )
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
