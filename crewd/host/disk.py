"""A disk that takes nothing: say so once, and try again until it does."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

from crewd.host.loop import Loop
from crewd.host.messages import Message

RESERVE_BYTES = 32 << 20
"""Output never takes the last of a disk: the daemon and its store have to go on there."""

_SMALL_SHARE = 8
"""Of a small disk no more than this part is kept free."""
_RETRY_SECONDS = 1.0
_LOOK_BYTES = 1 << 16
_LOOK_SECONDS = 1.0


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


class Reserve:
    """Room that output has to leave on a disk, looked at once per 64 KiB or second of output."""

    def __init__(self, directory: Path, size: int | None = None) -> None:
        """Keep so many bytes free; None: `RESERVE_BYTES`, but of a small disk an eighth."""
        self._directory = directory
        self._size = size
        self._unseen = 0
        self._look_at = 0.0

    def claim(self, size: int) -> None:
        """Raise the OSError of a full disk while less than the reserve is free."""
        self._unseen += size
        now = time.monotonic()
        if self._unseen < _LOOK_BYTES and now < self._look_at:
            return
        disk = os.statvfs(self._directory)
        least = self._size
        if least is None:
            least = min(RESERVE_BYTES, disk.f_blocks * disk.f_frsize // _SMALL_SHARE)
        if disk.f_bavail * disk.f_frsize < least:
            self._look_at = 0.0
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._unseen = 0
        self._look_at = now + _LOOK_SECONDS
