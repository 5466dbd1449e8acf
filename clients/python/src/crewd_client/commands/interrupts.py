"""Ctrl-C and SIGTERM, taken one at a time instead of ending the command."""

from __future__ import annotations

import asyncio
import signal
from types import TracebackType
from typing import Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """While entered, signals wait here to be taken."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[signal.Signals] = asyncio.Queue()

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        for each in _SIGNALS:
            loop.add_signal_handler(each, self._waiting.put_nowait, each)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        loop = asyncio.get_running_loop()
        for each in _SIGNALS:
            loop.remove_signal_handler(each)

    async def next(self) -> signal.Signals:
        return await self._waiting.get()

    async def next_within(self, seconds: float) -> signal.Signals | None:
        try:
            async with asyncio.timeout(seconds):
                return await self._waiting.get()
        except TimeoutError:
            return None
