"""How the daemon stands, in one line for people: told when it changes, not asked for."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from math import inf
from typing import Final

from crewd.runtime.feed import Bell, Feed
from crewd.store import Counts, Reads
from crewd.workers.host_link import HostLink, HostStatus

REST_SECONDS: Final = 0.25
"""What changes more often than this is told once in so long."""


class Standing:
    """Counts come from the rows, as those that GetServerInfo tells."""

    def __init__(
        self, feed: Feed, reads: Reads, link: HostLink, *, status: Callable[[], str]
    ) -> None:
        self._feed = feed
        self._reads = reads
        self._link = link
        self._status = status
        self._bell = Bell()

    def stir(self) -> None:
        """Look again: something changed that no event tells of."""
        self._bell.ring()

    async def follow(self, tell: Callable[[str], None]) -> None:
        """Tell how we stand, now and whenever it is something else: until cancelled."""
        told = ""
        with self._feed.watch_runs_and_asks() as changes:
            self._bell = changes.news
            self._link.on_status = self.stir
            self.stir()
            while await changes.news.wait(inf):
                changes.take()
                changes.take_deleted_runs()
                text = await self._text()
                if text != told:
                    tell(text)
                    told = text
                await asyncio.sleep(REST_SECONDS)

    async def _text(self) -> str:
        status = self._status()
        if status == "recovering":
            return status
        try:
            said = _counted(await self._reads.counts())
        except sqlite3.Error as error:
            said = f"the database cannot be read: {error}"
        if status == "draining":
            said = f"ending, {said}"
        if self._link.status is HostStatus.UNREACHABLE:
            said = f"{said}; no worker can be started: {self._link.status_message}"
        return said


def _counted(counts: Counts) -> str:
    runs = {0: "no runs", 1: "1 run"}.get(counts.open_runs, f"{counts.open_runs} runs")
    return f"{runs}, {counts.open_asks} waiting for you" if counts.open_asks else runs
