"""A service manager as a process sees it: a datagram socket that hears everything."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 60.0
_BYTES = 4096


class Listener:
    def __init__(self, address: str) -> None:
        self.address = address
        self.heard: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"\0{address[1:]}" if address.startswith("@") else address)

    def close(self) -> None:
        self._socket.close()

    def wait_for(self, text: str) -> list[str]:
        """Wait until this is said; return all that was said since the last time we waited."""
        return self.wait_until(lambda said: said == text, text)

    def wait_until(self, fact: Callable[[str], bool], what: str) -> list[str]:
        start = len(self.heard)
        give_up_at = time.monotonic() + PATIENCE
        while not (self.heard[start:] and fact(self.heard[-1])):
            left = give_up_at - time.monotonic()
            assert left > 0, f"{what} was not said: {self.heard}"
            self.hear(left)
        return self.heard[start:]

    def hear(self, seconds: float) -> bool:
        """Hear one thing more; tell whether there was one in time."""
        self._socket.settimeout(seconds)
        try:
            self.heard.append(self._socket.recv(_BYTES).decode())
        except TimeoutError:
            return False
        return True

    def drain(self) -> None:
        """Hear all that was said before now."""
        while self.hear(1e-6):
            pass


@contextmanager
def a_listener(root: Path, name: str = "") -> Generator[Listener]:
    listener = Listener(name or str(root / "notify"))
    try:
        yield listener
    finally:
        listener.close()
