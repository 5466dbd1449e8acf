"""What the daemon is made of: the one place where its parts are made and connected."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog

from crewd import __version__, life
from crewd.config import Config, HostMode
from crewd.instance import read_token
from crewd.life import End, Ending
from crewd.origin import Origin
from crewd.paths import config_dir
from crewd.refusal import Exit, Refusal
from crewd.rpc.auth import Auth
from crewd.rpc.encode import encode_event
from crewd.rpc.ports import Drain, Identity, Wiring
from crewd.rpc.server import Server, SocketError
from crewd.runtime.clock import Clock
from crewd.runtime.feed import Feed
from crewd.runtime.ids import new_id
from crewd.runtime.pump import PumpTools
from crewd.runtime.standing import Standing
from crewd.runtime.supervisor import DrainMode, Parts, Supervisor
from crewd.runtime.tokens import TaskTokens
from crewd.store import ArtifactFiles, Log, NewerDatabaseError, Reads
from crewd.workers.environment import Environment
from crewd.workers.host_link import HostLink, News

_STREAMS_GRACE_SECONDS = 2.0
_OUTPUT_THREADS = 2

_log = structlog.get_logger()


def run(config: Config) -> Exit:
    """Be the daemon until it ends; return the exit code."""
    return life.live(config, assemble)


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """The connected parts, in the words of `crewd.life`."""

    server: Server
    supervisor: Supervisor
    link: HostLink
    standing: Standing
    store_id: str

    def side_tasks(self) -> Mapping[str, Callable[[], Awaitable[object]]]:
        return {"host_link": self.link.run}

    async def serve(self) -> None:
        try:
            await self.server.start()
        except SocketError as error:
            hint = "name another socket with --socket or CREWD_SOCKET"
            raise Refusal(str(error), hint=hint) from error

    async def recover(self) -> None:
        open_runs = await self.supervisor.recover()
        await self.server.set_serving(serving=True)
        self.standing.stir()
        _log.info("recovered", open_runs=open_runs)

    async def follow_standing(self, tell: Callable[[str], None]) -> None:
        await self.standing.follow(tell)

    async def stop(self, end: End) -> None:
        await self.supervisor.drain(DrainMode.LEAVE_RUNNING)
        await self.server.stop(
            end.reason, restart_expected=end.restart_expected, grace_seconds=_STREAMS_GRACE_SECONDS
        )
        await self.supervisor.quiesce()


@asynccontextmanager
async def assemble(config: Config, who: life.Identity, ending: Ending) -> AsyncGenerator[Daemon]:
    """Open the store and connect all parts; on leaving, close them in the opposite order."""
    async with AsyncExitStack() as stack:
        feed = Feed()
        log = _open_log(config.paths.database, feed, ending)
        stack.push_async_callback(log.close)
        reads = Reads(config.paths.database)
        stack.push_async_callback(reads.close)
        executor = stack.enter_context(ThreadPoolExecutor(_OUTPUT_THREADS, "output"))
        tasks = await stack.enter_async_context(_supervised(ending))
        news = _News()
        link = HostLink(
            state_dir=config.paths.root,
            daemon_epoch=who.instance_id,
            on_news=news,
            spawn=config.host is HostMode.AUTO,
        )
        tokens = TaskTokens(who.task_key)
        artifacts = ArtifactFiles(config.paths.artifacts)
        parts = Parts(
            log=log,
            reads=reads,
            encode=encode_event,
            tools=PumpTools(link, config.paths.transcripts, artifacts, executor),
            environment=Environment(os.environ, config_dir(os.environ) / "env"),
            own_variables={"CREWD_SOCKET": str(config.socket)},
            tokens=tokens,
            max_workers=config.max_workers,
        )
        supervisor = Supervisor(parts, tasks)
        stack.callback(supervisor.close)
        news.hear = supervisor.heard
        wiring = Wiring(
            supervisor=supervisor,
            host=link,
            drain=_drain(supervisor, ending),
            reads=reads,
            feed=feed,
            auth=Auth(who.token, tokens, partial(read_token, config.paths.token)),
            identity=_identity(config, who, log),
            transcripts=config.paths.transcripts,
            artifacts=artifacts,
            config_dir=config_dir(os.environ),
            heartbeat_seconds=config.heartbeat_interval.total_seconds(),
        )
        yield Daemon(
            server=Server(wiring),
            supervisor=supervisor,
            link=link,
            standing=Standing(feed, reads, link, status=wiring.status),
            store_id=log.store_id,
        )


class _News:
    """Where the host link's news go: the supervisor needs the link before it can hear from it."""

    def __init__(self) -> None:
        self.hear: Callable[[News], None] = lambda _news: None

    def __call__(self, news: News) -> None:
        self.hear(news)


def _open_log(database: Path, feed: Feed, ending: Ending) -> Log:
    def broken(error: BaseException) -> None:
        _log.error("store_failed", detail=str(error), exc_info=error)
        ending.ask(End(reason=f"nothing can be stored: {error}", exit_code=Exit.FAILED))

    try:
        return Log(
            database,
            on_commit=feed.publish,
            on_state=lambda paused: _log.warning("store_state", paused=paused),
            on_fatal=broken,
        )
    except NewerDatabaseError as error:
        raise Refusal(str(error), exit_code=Exit.FAILED) from error
    except (sqlite3.Error, OSError) as error:
        raise Refusal(
            f"the database {database} cannot be opened: {error}",
            hint="put a copy back that is whole (those beside it are made before each migration), "
            "or move it away to begin anew",
            exit_code=Exit.FAILED,
        ) from error


@asynccontextmanager
async def _supervised(ending: Ending) -> AsyncGenerator[asyncio.TaskGroup]:
    """Give a group whose tasks end on leaving; if one of them fails, the daemon does."""
    ready: asyncio.Future[asyncio.TaskGroup] = asyncio.get_running_loop().create_future()

    async def hold() -> None:
        async with asyncio.TaskGroup() as group:
            ready.set_result(group)
            await asyncio.Event().wait()

    def report(holding: asyncio.Task[None]) -> None:
        if not holding.cancelled() and (error := holding.exception()) is not None:
            incident = new_id("inc")
            _log.error("task_failed", incident_id=incident, exc_info=error)
            ending.ask(End(reason=f"a task failed ({incident})", exit_code=Exit.BUG))

    holding = asyncio.create_task(hold(), name="supervised")
    holding.add_done_callback(report)
    try:
        yield await ready
    finally:
        holding.cancel()
        await asyncio.wait([holding])


def _drain(supervisor: Supervisor, ending: Ending) -> Drain:
    async def drain(*, wait: bool) -> int:
        left = await supervisor.drain(DrainMode.WAIT if wait else DrainMode.LEAVE_RUNNING)
        ending.ask(End(reason="the daemon was told to end (drain)"))
        return left

    return drain


def _identity(config: Config, who: life.Identity, log: Log) -> Identity:
    return Identity(
        version=__version__,
        instance_id=who.instance_id,
        store_id=log.store_id,
        schema_version=log.schema_version,
        state_dir=config.paths.root,
        socket=config.socket,
        start_time=Clock().now(),
        origin=Origin(),
    )
