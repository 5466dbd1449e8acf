"""Whether the daemon is there: not yet, now, or about to go."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from crewd.runtime.feed import Bell
from crewd.v1 import stream_pb2


class Presence:
    """Its end is announced once, and wakes every stream so that it can say its last word."""

    def __init__(self) -> None:
        self.recovered = False
        """Whether runs may be read and written."""
        self.draining: stream_pb2.Draining | None = None
        """What streams say last; None while the daemon stays."""
        self._bells: dict[Bell, None] = {}

    def announce_end(self, reason: str, *, restart_expected: bool) -> None:
        self.draining = stream_pb2.Draining(reason=reason, restart_expected=restart_expected)
        for bell in self._bells:
            bell.ring()

    @contextmanager
    def wakes(self, bell: Bell) -> Generator[None]:
        """Have the bell rung at the end."""
        self._bells[bell] = None
        try:
            yield
        finally:
            del self._bells[bell]
