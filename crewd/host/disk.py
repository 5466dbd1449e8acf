"""A disk that takes nothing: say so once, and try again until it does."""

from __future__ import annotations

from collections.abc import Callable

from crewd.host.loop import Loop
from crewd.host.messages import Message

_RETRY_SECONDS = 1.0


class Disk:
    def __init__(self, loop: Loop, on_news: Callable[[Message], None]) -> None:
        self._loop = loop
        self._on_news = on_news
        self._waiting: dict[object, Callable[[], bool]] = {}

    def refused(self, who: object, error: OSError, retry: Callable[[], bool]) -> None:
        """Call `retry` once a second until it returns true."""
        if not self._waiting:
            self._on_news({"news": "disk", "message": f"cannot write: {error.strerror}"})
            self._loop.after(_RETRY_SECONDS, self._retry)
        self._waiting[who] = retry

    def waits(self, who: object) -> bool:
        return who in self._waiting

    def give_up(self, who: object) -> None:
        self._waiting.pop(who, None)

    def _retry(self) -> None:
        for who, retry in list(self._waiting.items()):
            if who in self._waiting and retry():
                self.give_up(who)
        if self._waiting:
            self._loop.after(_RETRY_SECONDS, self._retry)
        else:
            self._on_news({"news": "disk_ok"})
