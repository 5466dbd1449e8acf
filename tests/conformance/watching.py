"""A watch of the library that is read in the background."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import TypeVar

from crewd_client import CrewdError

T = TypeVar("T")


class Watch:
    def __init__(self, items: AsyncGenerator[T, None], show: Callable[[T], object]) -> None:
        self.items: list[object] = []
        self._taken = 0
        self._ended = False
        self._error: CrewdError | None = None
        self._changed = asyncio.Condition()
        self._task = asyncio.create_task(self._read(items, show))

    async def until(self, fits: Callable[[object], bool]) -> object:
        """Take items until one fits; an error of the watch is raised, its end is one."""
        while True:
            await self._news(lambda: self._taken < len(self.items) or self._ended)
            if self._taken == len(self.items):
                self._raise()
                raise AssertionError(f"the watch ended without it, after {self.items[-3:]}")
            item = self.items[self._taken]
            self._taken += 1
            if fits(item):
                return item

    async def end(self) -> list[object]:
        await self._news(lambda: self._ended)
        self._raise()
        return self.items

    async def close(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error
        if self._task.done():
            self._task.result()

    async def _news(self, fact: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(fact)

    async def _read(self, items: AsyncGenerator[T, None], show: Callable[[T], object]) -> None:
        try:
            async with aclosing(items):
                async for item in items:
                    await self._note(show(item))
        except CrewdError as error:
            self._error = error
        finally:
            self._ended = True
            async with self._changed:
                self._changed.notify_all()

    async def _note(self, item: object) -> None:
        async with self._changed:
            self.items.append(item)
            self._changed.notify_all()
