"""The daemon's end of the host: always trying to be connected, never waiting for it.

Commands are fire and forget; what came of them is news. While the host is not connected they are
dropped, since whoever gave them gives them again from its rows on `HostUp`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

from crewd.host.protocol import HostPaths, secret
from crewd.workers.host_connection import HostConnection
from crewd.workers.host_news import (
    DiskFull,
    DiskOk,
    Exit,
    ExitSeen,
    HostDown,
    HostSnapshot,
    HostStatus,
    HostUp,
    JobSeen,
    LostSeen,
    News,
    Output,
    Started,
    StartJob,
    StartRefused,
    StdinRoom,
    Survivor,
    WriteRefused,
    Written,
)
from crewd.workers.host_passes import Passes, not_passed
from crewd.workers.host_spool import SpoolReader
from crewd.workers.host_start import HostOfUnit, HostStarter
from crewd.workers.host_wire import (
    Line,
    Refusal,
    hello,
    news_of,
    pass_of,
    snapshot_of,
    start_of,
)

__all__ = [
    "DiskFull",
    "DiskOk",
    "Exit",
    "ExitSeen",
    "HostDown",
    "HostGoneError",
    "HostLink",
    "HostRefusedError",
    "HostSnapshot",
    "HostStatus",
    "HostUp",
    "JobSeen",
    "LostSeen",
    "News",
    "Output",
    "Patience",
    "SpoolReader",
    "StartJob",
    "StartRefused",
    "Started",
    "StdinRoom",
    "Survivor",
    "WriteRefused",
    "Written",
]

_FIRST_PAUSE_SECONDS = 0.01
_LONGEST_PAUSE_SECONDS = 1.0
_SUPERSEDED_PAUSE_SECONDS = 5.0
_STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the host may take to answer, and how often it is asked while it matters.

    It does while jobs are live or something else that was asked is not answered.
    """

    answer: timedelta = timedelta(seconds=5)
    ping: timedelta = timedelta(seconds=5)


_PATIENCE = Patience()


class HostGoneError(ConnectionError):
    """The host is not connected, or the connection ended before it answered."""


class HostRefusedError(Exception):
    """The host answered no; `kind` is its reason (`busy`: jobs are live)."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.kind = refusal.kind


class HostLink:
    def __init__(
        self,
        *,
        state_dir: Path,
        daemon_epoch: str,
        on_news: Callable[[News], None],
        spawn: bool,
        patience: Patience = _PATIENCE,
    ) -> None:
        self._paths = HostPaths(state_dir)
        self._daemon_epoch = daemon_epoch
        self._on_news = on_news
        self._starter = HostStarter(self._paths) if spawn else HostOfUnit(self._paths)
        self._patience = patience
        self._connection: HostConnection | None = None
        self._up = False
        self._pause = _FIRST_PAUSE_SECONDS
        self._live: set[str] = set()
        self._pinging: asyncio.TimerHandle | None = None
        self._no_answer_since: float | None = None
        self._consumed: dict[str, tuple[int, int]] = {}
        self._calls: set[asyncio.Future[Line]] = set()
        self._passes = Passes()
        self.status = HostStatus.STARTING
        self.status_message = "looking for the host"
        self.on_status: Callable[[], None] = lambda: None
        self.snapshot: HostSnapshot | None = None

    async def run(self) -> None:
        """Connect, start the host where none answers, connect again: until cancelled."""
        try:
            while True:
                try:
                    connection = await self._connect()
                except OSError as error:
                    self._no_answer(error)
                else:
                    reason = await connection.ended
                    if self._gone(reason):
                        continue
                await asyncio.sleep(self._next_pause())
        finally:
            self._leave()

    def start(self, job: StartJob) -> None:
        self._request(start_of(job), partial(self._start_answered, job.job))

    def pass_on(self, from_job: str, to_job: str, epoch: str) -> None:
        """End a job and let another have its process, or refuse its start as `not_passed`."""
        self._passes.ask(to_job)
        self._request(pass_of(from_job, to_job, epoch), partial(self._pass_answered, to_job))

    def write(self, job: str, seq: int, data: str) -> None:
        message: dict[str, object] = {"verb": "write", "job": job, "seq": seq, "data": data}
        self._request(message, partial(self._write_answered, job))

    def close_stdin(self, job: str) -> None:
        self._request({"verb": "close", "job": job}, _ignore)

    def stop(self, job: str, grace: timedelta) -> None:
        """Have the whole tree stopped; its exit is the answer."""
        grace_ms = max(0, grace // timedelta(milliseconds=1))
        self._request({"verb": "stop", "job": job, "grace_ms": grace_ms}, _ignore)

    def consumed(self, job: str, *, stdout: int, stderr: int) -> None:
        """Tell how much of the spools has been taken for good; the last word of a turn is sent."""
        if self._up and self._connection is not None:
            self._consumed[job] = stdout, stderr
            self._connection.wake()

    def forget(self, jobs: Sequence[str]) -> None:
        """Acknowledge exits and losses: the host drops the jobs and what it spooled of them."""
        if jobs:
            self._request({"verb": "forget", "jobs": list(jobs)}, _ignore)

    async def list(self) -> HostSnapshot:
        """Return what the host knows now, or raise HostGoneError."""
        return snapshot_of(await self._call({"verb": "list"}))

    async def shutdown(self, *, stop_jobs: bool) -> None:
        """End the host; raise HostRefusedError when jobs are live and shall not be stopped."""
        await self._call({"verb": "shutdown", "stop_jobs": stop_jobs})

    def probe(self) -> None:
        """Have a host that hangs noticed although nothing else is asked of it."""
        if self._connection is not None and not self._connection.waits:
            self._request({"verb": "ping"}, _ignore)

    def spool(self, job: str, stream: str) -> SpoolReader:
        return SpoolReader(self._paths, job, stream)

    async def _connect(self) -> HostConnection:
        patience = self._patience.answer.total_seconds()
        _, connection = await asyncio.get_running_loop().create_unix_connection(
            lambda: HostConnection(self._hear, self._silent, patience=patience),
            str(self._paths.socket),
        )
        self._connection = connection
        connection.before_flush = self._send_consumed
        greeting = hello(secret(self._paths.key), self._daemon_epoch)
        connection.request(greeting, self._welcome)
        return connection

    def _welcome(self, line: Line) -> None:
        """Take the one answer that says how everything is; news before it are in it."""
        if not line.ok:
            self._say(HostStatus.UNREACHABLE, f"the host refused us: {line.error.message}")
            return
        self.snapshot = snapshot_of(line)
        self._up = True
        self._pause = _FIRST_PAUSE_SECONDS
        self._no_answer_since = None
        self._live = set(self.snapshot.jobs)
        self._keep_pinging()
        self._say(HostStatus.CONNECTED, "")
        undecided = self._passes.take()
        self._on_news(HostUp(self.snapshot))
        for refused in self._passes.not_in(self.snapshot, undecided):
            self._on_news(refused)

    def _hear(self, line: Line) -> None:
        if line.news == "superseded":
            self._pause = _SUPERSEDED_PAUSE_SECONDS
            self._down("another daemon has taken the host over")
        if not self._up:
            return
        news = news_of(line)
        if isinstance(news, Exit):
            self._live.discard(news.exit.job)
        if news is not None:
            self._on_news(news)

    def _silent(self) -> None:
        connection = self._connection
        if connection is None:
            return
        pid = connection.host_pid
        reason = f"the host (pid {pid}) does not answer; if that stays so: kill -9 {pid}"
        self._say(HostStatus.UNREACHABLE, reason)
        if self._up:
            self._down(reason)
            connection.forget_pending()
            connection.request({"verb": "list"}, self._welcome)

    def _gone(self, reason: str) -> bool:
        """Note the end of a connection; tell whether it was a good one."""
        was_up = self._up
        self._connection = None
        self._down(reason)
        if self.status is HostStatus.CONNECTED:
            self._say(HostStatus.STARTING, reason)
        return was_up

    def _no_answer(self, error: OSError) -> None:
        now = asyncio.get_running_loop().time()
        since = self._no_answer_since = self._no_answer_since or now
        reason = f"no host answers at {self._paths.socket}: {error.strerror}"
        reason = self._starter.keep_one_starting() or reason
        waits = now - since < self._patience.answer.total_seconds()
        self._say(HostStatus.STARTING if waits else HostStatus.UNREACHABLE, reason)

    def _down(self, reason: str) -> None:
        for call in self._calls:
            if not call.done():
                call.set_exception(HostGoneError(reason))
        self._consumed.clear()
        if self._up:
            self._up = False
            self._on_news(HostDown(reason))

    def _leave(self) -> None:
        self._up = False
        if self._pinging is not None:
            self._pinging.cancel()
        if self._connection is not None:
            self._connection.close()
        for call in self._calls:
            call.cancel()
        self._starter.let_go()

    def _request(self, message: dict[str, object], on_reply: Callable[[Line], None]) -> None:
        if self._up and self._connection is not None:
            self._connection.request(message, on_reply)
            self._keep_pinging()

    async def _call(self, message: dict[str, object]) -> Line:
        if not self._up:
            raise HostGoneError(self.status_message)
        answer: asyncio.Future[Line] = asyncio.get_running_loop().create_future()
        self._calls.add(answer)
        try:
            self._request(message, partial(_resolve, answer))
            line = await answer
        finally:
            self._calls.discard(answer)
        if not line.ok:
            raise HostRefusedError(line.error)
        return line

    def _start_answered(self, job: str, line: Line) -> None:
        if line.ok:
            if not line.ended:
                self._live.add(job)
            self._on_news(Started(job, line.pid))
        elif line.error.kind != _STOPPED:  # Its exit, which follows, says it better.
            self._on_news(StartRefused(job, line.error.kind, line.error.message))

    def _pass_answered(self, job: str, line: Line) -> None:
        self._passes.answered(job)
        if line.ok:
            self._start_answered(job, line)
        else:
            self._on_news(not_passed(job, line.error.message))

    def _write_answered(self, job: str, line: Line) -> None:
        if line.ok:
            self._on_news(Written(job, line.stdin_seq))
        else:
            self._on_news(WriteRefused(job, line.error.kind))

    def _send_consumed(self) -> None:
        if self._connection is not None:
            for job, (stdout, stderr) in self._consumed.items():
                self._connection.send(
                    {"verb": "read", "job": job, "stdout": stdout, "stderr": stderr}
                )
        self._consumed.clear()

    def _keep_pinging(self) -> None:
        if self._pinging is None:
            seconds = self._patience.ping.total_seconds()
            self._pinging = asyncio.get_running_loop().call_later(seconds, self._ping)

    def _ping(self) -> None:
        self._pinging = None
        waits = self._connection is not None and self._connection.waits
        if self._live or waits:
            self._request({"verb": "ping"}, _ignore)

    def _next_pause(self) -> float:
        pause = self._pause
        self._pause = min(2 * pause, max(pause, _LONGEST_PAUSE_SECONDS))
        return pause

    def _say(self, status: HostStatus, message: str) -> None:
        if (status, message) != (self.status, self.status_message):
            self.status, self.status_message = status, message
            self.on_status()


def _resolve(answer: asyncio.Future[Line], line: Line) -> None:
    if not answer.done():
        answer.set_result(line)


def _ignore(_line: Line) -> None:
    return
