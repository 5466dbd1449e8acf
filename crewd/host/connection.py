"""One client of the host's socket: lines in, lines out, never waited for."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

from crewd.host.loop import READ, WRITE, Loop
from crewd.host.messages import Message, line
from crewd.host.protocol import LINE_BYTES

_RECEIVE_BYTES = 1 << 18
_UNSENT_BYTES = 64 << 20
_LAST_WORDS_SECONDS = 1.0
_CREDENTIALS = struct.Struct("3i")

OnLine = Callable[["Connection", bytes], None]
OnClosed = Callable[["Connection"], None]


class Connection:
    def __init__(
        self, loop: Loop, sock: socket.socket, *, on_line: OnLine, on_closed: OnClosed
    ) -> None:
        self._loop = loop
        self._sock = sock
        self._on_line = on_line
        self._on_closed = on_closed
        self._received = bytearray()
        self._unsent = bytearray()
        self._watching_room = False
        self._last_words = False
        self.closed = False
        loop.watch(sock.fileno(), READ, self._on_event)

    @property
    def clogged(self) -> bool:
        return bool(self._unsent) and self._watching_room

    def send(self, message: Message) -> None:
        self.send_line(line(message))

    def send_line(self, raw: bytes) -> None:
        """Add a line to what the next flush sends."""
        if not self.closed:
            self._unsent += raw

    def flush(self) -> None:
        if self.closed or not self._unsent:
            return
        try:
            count = self._sock.send(self._unsent)
        except BlockingIOError:
            count = 0
        except OSError:
            self.close()
            return
        del self._unsent[:count]
        if len(self._unsent) > _UNSENT_BYTES or (self._last_words and not self._unsent):
            self.close()
        elif bool(self._unsent) != self._watching_room:
            self._watching_room = not self._watching_room
            events = READ | WRITE if self._watching_room else READ
            self._loop.change(self._sock.fileno(), events)

    def close_after_flush(self) -> None:
        """Read nothing more, say what waits to be said, and close."""
        self._last_words = True

    def flush_and_close(self) -> None:
        """Wait a moment for the peer to take what is left, then close."""
        if not self.closed:
            self._sock.settimeout(_LAST_WORDS_SECONDS)
            try:
                self._sock.sendall(bytes(self._unsent))
            except OSError:
                self._unsent.clear()
            self.close()

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._loop.forget(self._sock.fileno())
        self._sock.close()
        self._received.clear()
        self._unsent.clear()
        self._on_closed(self)

    def _on_event(self, events: int) -> None:
        # Room to write is only a reason to wake up: what is sent is sent at the end of the turn,
        # when the journal has it too.
        if events != WRITE and not self.closed:
            self._receive()

    def _receive(self) -> None:
        try:
            data = self._sock.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        self._received += data
        if b"\n" in data:
            lines = bytes(self._received).split(b"\n")
            self._received = bytearray(lines.pop())
            for raw in lines:
                if self.closed or self._last_words:
                    return
                self._on_line(self, raw)
        if len(self._received) > LINE_BYTES:
            self.close()


def peer_uid(sock: socket.socket) -> int:
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    uid: int = _CREDENTIALS.unpack(raw)[1]
    return uid
