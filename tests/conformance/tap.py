"""A relay between clients and a daemon that reads along: which authority do clients name?"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hpack import Decoder

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_FRAME_HEAD = 9
_HEADERS, _CONTINUATION = 1, 9
_END_HEADERS, _PADDED, _PRIORITY = 0x4, 0x8, 0x20
_PRIORITY_BYTES = 5
_CHUNK = 64 * 1024


class Tap:
    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.authorities: set[str] = set()
        self._target = socket
        self._server: asyncio.Server | None = None
        self._relays: set[asyncio.Task[None]] = set()

    async def open(self, target: Path) -> None:
        """Listen, and pass on to the target; a daemon that was restarted may have another."""
        self._target = target
        if self._server is None:
            self._server = await asyncio.start_unix_server(self._accept, self.socket)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for relay in self._relays:
            relay.cancel()
        await asyncio.gather(*self._relays, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relay = asyncio.create_task(self._relay(reader, writer))
        self._relays.add(relay)
        relay.add_done_callback(self._relays.discard)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            back, forth = await asyncio.open_unix_connection(self._target)
            headers = RequestHeaders()
            ways = [
                asyncio.create_task(self._pass(reader, forth, headers)),
                asyncio.create_task(self._pass(back, writer, None)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                forth.close()
        writer.close()

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        headers: RequestHeaders | None,
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(_CHUNK):
                if headers is not None:
                    self.authorities.update(headers.authorities(data))
                writer.write(data)
                await writer.drain()


class RequestHeaders:
    """Finds the header blocks in what a client sends over HTTP/2."""

    def __init__(self) -> None:
        self._decoder = Decoder()
        self._unread = b""
        self._block = b""
        self._preface = len(_PREFACE)

    def authorities(self, data: bytes) -> Iterator[str]:
        """Give the `:authority` of each request that is complete with these bytes."""
        self._unread += data
        if self._preface and len(self._unread) >= self._preface:
            self._unread, self._preface = self._unread[self._preface :], 0
        while not self._preface and len(self._unread) >= _FRAME_HEAD:
            size = _FRAME_HEAD + int.from_bytes(self._unread[:3])
            if len(self._unread) < size:
                return
            frame, self._unread = self._unread[:size], self._unread[size:]
            yield from self._frame(kind=frame[3], flags=frame[4], payload=frame[_FRAME_HEAD:])

    def _frame(self, *, kind: int, flags: int, payload: bytes) -> Iterator[str]:
        if kind == _HEADERS:
            if flags & _PADDED:
                payload = payload[1 : len(payload) - payload[0]]
            self._block = payload[_PRIORITY_BYTES if flags & _PRIORITY else 0 :]
        elif kind == _CONTINUATION:
            self._block += payload
        else:
            return
        if flags & _END_HEADERS:
            for name, value in self._decoder.decode(self._block, raw=True):
                if name == b":authority":
                    yield bytes(value).decode()
