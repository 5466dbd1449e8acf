"""A link to real host processes, used as the daemon does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from crewd.workers.host_link import (
    Exit,
    ExitSeen,
    HostLink,
    HostSnapshot,
    HostStatus,
    HostUp,
    News,
    Patience,
    StartJob,
)
from tests.host.driver import eventually

N = TypeVar("N")


class Daemon:
    """Collects the news of a link and gives commands as the runtime does."""

    def __init__(
        self, state_dir: Path, *, spawn: bool = True, patience: Patience | None = None
    ) -> None:
        self.news: list[News] = []
        self._came = asyncio.Event()
        self.link = HostLink(
            state_dir=state_dir,
            daemon_epoch="test",
            on_news=self._take,
            spawn=spawn,
            patience=patience or Patience(),
        )
        self._running = asyncio.create_task(self.link.run())

    def _take(self, news: News) -> None:
        self.news.append(news)
        self._came.set()

    async def wait(self, kind: type[N], fact: Callable[[N], object] = lambda _: True) -> N:
        """Take the first news of this kind for which the fact holds off the list."""
        async with asyncio.timeout(20):
            while True:
                for news in self.news:
                    if isinstance(news, kind) and fact(news):
                        self.news.remove(news)
                        return news
                self._came.clear()
                await self._came.wait()

    async def up(self) -> HostSnapshot:
        return (await self.wait(HostUp)).snapshot

    async def exit_of(self, job: str) -> ExitSeen:
        return (await self.wait(Exit, lambda news: news.exit.job == job)).exit

    def start(
        self, job: str, *argv: str, env: Mapping[str, str] | None = None, stdin: bool = False
    ) -> None:
        assert self.link.snapshot is not None
        epoch = self.link.snapshot.epoch
        environment = env or {"PATH": "/usr/bin:/bin"}
        self.link.start(
            StartJob(job=job, epoch=epoch, argv=argv, cwd="/", env=environment, stdin=stdin)
        )

    def shell(self, job: str, script: str, *, stdin: bool = False) -> None:
        self.start(job, "/bin/sh", "-c", script, stdin=stdin)

    def status(self) -> HostStatus:
        return self.link.status

    async def becomes(self, status: HostStatus) -> None:
        await asyncio.to_thread(eventually, lambda: self.status() is status)

    async def leave(self) -> None:
        self._running.cancel()
        await asyncio.wait([self._running])

    @property
    def host_pid(self) -> int:
        assert self.link.snapshot is not None
        return self.link.snapshot.pid
