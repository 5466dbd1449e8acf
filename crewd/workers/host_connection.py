"""One connection to the host: requests out, replies and news in, and an eye on its silence."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import cast

import msgspec

from crewd.workers.host_wire import Line, decode, encode

_CREDENTIALS = struct.Struct("3i")

OnReply = Callable[[Line], None]


class HostConnection(asyncio.Protocol):
    """Sends what was asked for in one loop turn with one write.

    `on_silence` is called when something was asked and nothing at all has come for `patience`
    seconds.
    """

    def __init__(
        self, on_news: Callable[[Line], None], on_silence: Callable[[], None], *, patience: float
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_news = on_news
        self._on_silence = on_silence
        self._patience = patience
        self._transport: asyncio.Transport | None = None
        self._received = b""
        self._unsent: list[bytes] = []
        self._pending: dict[int, OnReply] = {}
        self._next_id = 1
        self._flush_is_due = False
        self._waiting_since: float | None = None
        self._watchdog: asyncio.TimerHandle | None = None
        self.before_flush: Callable[[], None] = lambda: None
        self.host_pid = 0
        self.ended: asyncio.Future[str] = self._loop.create_future()

    @property
    def waits(self) -> bool:
        """Whether something was asked and is not answered."""
        return bool(self._pending)

    def request(self, message: dict[str, object], on_reply: OnReply) -> None:
        """Ask; the reply comes to `on_reply`, or never when the connection ends before."""
        message["id"] = self._next_id
        self._pending[self._next_id] = on_reply
        self._next_id += 1
        self.send(message)
        if self._waiting_since is None:
            self._waiting_since = self._loop.time()
            self._watch(self._patience)

    def send(self, message: dict[str, object]) -> None:
        """Say what has no reply."""
        self._unsent.append(encode(message))
        self.wake()

    def wake(self) -> None:
        """Have `before_flush` called, and all be sent, at the end of this turn."""
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush)

    def forget_pending(self) -> None:
        """Take no reply for what was asked until now."""
        self._pending.clear()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        peer: socket.socket = transport.get_extra_info("socket")
        raw = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        self.host_pid = int(_CREDENTIALS.unpack(raw)[0])

    def data_received(self, data: bytes) -> None:
        lines = (self._received + data).split(b"\n")
        self._received = lines.pop()
        for raw in lines:
            try:
                line = decode(raw)
            except msgspec.MsgspecError as error:
                self._end(f"the host sent what is no message: {error}")
                return
            self._take(line)
        self._waiting_since = None
        if self._pending:
            self._waiting_since = self._loop.time()
            self._watch(self._patience)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end("the host closed the connection" if exc is None else str(exc))

    def _take(self, line: Line) -> None:
        if line.id is None:
            self._on_news(line)
            return
        on_reply = self._pending.pop(line.id, None)
        if on_reply is not None:
            on_reply(line)

    def _flush(self) -> None:
        self.before_flush()
        self._flush_is_due = False
        if self._unsent and self._transport is not None and not self._transport.is_closing():
            self._unsent.append(b"")
            self._transport.write(b"\n".join(self._unsent))
        self._unsent.clear()

    def _watch(self, seconds: float) -> None:
        if self._watchdog is None:
            self._watchdog = self._loop.call_later(seconds, self._look)

    def _look(self) -> None:
        self._watchdog = None
        if self._waiting_since is None or self.ended.done():
            return
        left = self._waiting_since + self._patience - self._loop.time()
        if left > 0:
            self._watch(left)
        else:
            self._on_silence()

    def _end(self, reason: str) -> None:
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watchdog = None
        self._pending.clear()
        if not self.ended.done():
            self.ended.set_result(reason)
        self.close()
