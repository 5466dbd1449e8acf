"""Who may speak to the host: one controller at a time, of this user, who knows the key."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from functools import reduce

from crewd.host.connection import Connection, peer_uid
from crewd.host.loop import READ, Loop
from crewd.host.messages import Message, RefusedError, parsed, text

_WAITING_CONNECTIONS = 32
_ACCEPT_PAUSE_SECONDS = 0.2

Perform = Callable[[Connection, Message], Message | None]


class Door:
    """Accepts connections; the newest that says hello with the key replaces the one before."""

    def __init__(self, loop: Loop, listener: socket.socket, key: str) -> None:
        self._loop = loop
        self._listener = listener
        self._key = key
        self._connections: dict[Connection, None] = {}
        self.controller: Connection | None = None
        self.perform: Perform = lambda _connection, _message: None
        self.greet: Callable[[], Message] = dict
        self.on_controller: Callable[[], None] = lambda: None
        listener.setblocking(False)
        self._listen()

    def take(self, connection: Connection, message: Message) -> None:
        """Do what a message asks, and answer it."""
        try:
            answer = self._answer(connection, message)
        except RefusedError as refused:
            connection.send({"id": message.get("id"), "ok": False, "error": refused.answer})
            if connection is not self.controller:
                connection.close_after_flush()
            return
        if answer is not None:
            connection.send({"id": message.get("id"), "ok": True, **answer})

    def flush(self) -> None:
        for connection in list(self._connections):
            connection.flush()

    def close(self) -> None:
        """Let nobody in any more, and let the controller hear what waits to be said."""
        if self._listening:
            self._stop_listening()
        self._listener.close()
        if self.controller is not None:
            self.controller.flush_and_close()

    def _listen(self) -> None:
        self._listening = True
        self._loop.watch(self._listener.fileno(), READ, self._accept)

    def _stop_listening(self) -> None:
        self._listening = False
        self._loop.unwatch(self._listener.fileno())

    def _accept(self, _events: int) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            # The peer has gone already, or no descriptor is free: not to be asked in every turn.
            self._stop_listening()
            self._loop.after(_ACCEPT_PAUSE_SECONDS, self._listen)
            return
        if peer_uid(sock) != os.geteuid() or len(self._connections) > _WAITING_CONNECTIONS:
            sock.close()
            return
        sock.setblocking(False)
        connection = Connection(self._loop, sock, on_line=self._on_line, on_closed=self._on_closed)
        self._connections[connection] = None

    def _on_line(self, connection: Connection, raw: bytes) -> None:
        try:
            message = parsed(raw)
        except RefusedError as refused:
            connection.send({"id": None, "ok": False, "error": refused.answer})
            connection.close_after_flush()
            return
        self.take(connection, message)

    def _answer(self, connection: Connection, message: Message) -> Message | None:
        verb = text(message, "verb")
        if verb == "hello":
            self._let_in(connection, text(message, "key"))
            return self.greet()
        if connection is not self.controller:
            raise RefusedError("unauthenticated", "say hello first")
        if verb == "list":
            return self.greet()
        return self.perform(connection, message)

    def _let_in(self, connection: Connection, key: str) -> None:
        if not _same(key.encode(errors="replace"), self._key.encode()):
            raise RefusedError("unauthenticated", "this is not the key")
        before = self.controller
        if before is connection:
            return
        self.controller = connection
        if before is not None:
            before.send({"news": "superseded"})
            before.close_after_flush()
        self.on_controller()

    def _on_closed(self, connection: Connection) -> None:
        self._connections.pop(connection, None)
        if connection is self.controller:
            self.controller = None
            self.on_controller()


def _same(given: bytes, expected: bytes) -> bool:
    """Compare in constant time; `hmac` would do it too, and load 4 MB of OpenSSL."""
    pairs = zip(given, expected, strict=False)
    difference = reduce(lambda seen, pair: seen | (pair[0] ^ pair[1]), pairs, 0)
    return len(given) == len(expected) and difference == 0
