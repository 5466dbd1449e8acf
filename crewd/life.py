"""The life of one daemon process: one start, one reason to end, one way out.

What the daemon consists of is not known here: `Parts` is all that is asked of it.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Protocol

import structlog

from crewd import __version__
from crewd.config import Config
from crewd.instance import (
    Holder,
    announced,
    lock_socket,
    lock_state,
    operator_token,
    task_key,
)
from crewd.refusal import Exit, Refusal
from crewd.systemd.notify import Manager, take_manager
from crewd_client.locate import DaemonFile

PROTOCOL = 1
STOP_TIMEOUT = timedelta(seconds=10)

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who this process is to others. `instance_id` is new at every start."""

    instance_id: str
    token: str
    task_key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Why the daemon ends, and with what exit code."""

    reason: str
    exit_code: Exit = Exit.DONE
    restart_expected: bool = False


class Ending:
    """The one place where the end is asked for. The first to ask decides; belongs to one loop."""

    __slots__ = ("_asked", "_end")

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self._end: End | None = None

    def ask(self, end: End) -> None:
        if self._end is None:
            self._end = end
            self._asked.set()

    async def asked(self) -> End:
        await self._asked.wait()
        assert self._end is not None  # noqa: S101 - set before the event is
        return self._end


class Parts(Protocol):
    """The assembled daemon. Entering its context has opened the store; leaving it closes all."""

    @property
    def store_id(self) -> str: ...

    def side_tasks(self) -> Mapping[str, Callable[[], Awaitable[object]]]:
        """Give what runs for as long as the daemon: if one ends, the daemon does."""
        ...

    async def serve(self) -> None:
        """Bind the socket and answer at it, health NOT_SERVING."""
        ...

    async def recover(self) -> None:
        """Find out what became of the work of the process before; then health SERVING."""
        ...

    async def follow_standing(self, tell: Callable[[str], None]) -> None:
        """Tell in one line how things stand, now and whenever that changes: until cancelled."""
        ...

    async def stop(self, end: End) -> None:
        """Tell every stream the reason and let go of the socket; workers go on."""
        ...


Assemble = Callable[[Config, Identity, Ending], AbstractAsyncContextManager[Parts]]


def live(config: Config, assemble: Assemble) -> Exit:
    """Be the daemon until it ends. A refusal is raised before anything was opened or changed."""
    manager = take_manager(os.environ)
    os.umask(0o077)
    config.paths.make()
    me = Holder(
        pid=os.getpid(),
        version=__version__,
        socket=str(config.socket),
        state_dir=str(config.paths.root),
    )
    # Held to the end: a lock that nothing refers to is released.
    locks = [lock_state(config.paths.lock, me), lock_socket(config.socket, me)]
    identity = Identity(
        instance_id=secrets.token_hex(8),
        token=operator_token(config.paths.token),
        task_key=task_key(config.paths.task_key),
    )
    try:
        return asyncio.run(_live(config, identity, assemble, manager))
    except Refusal:
        raise
    except Exception:  # noqa: BLE001 - the daemon's top
        _log.exception("daemon_failed", incident_id=_incident())
        return Exit.BUG
    finally:
        locks.clear()


async def _live(
    config: Config, identity: Identity, assemble: Assemble, manager: Manager | None
) -> Exit:
    ending = Ending()
    _listen_to_signals(ending)
    _log.info("daemon_starting", state_dir=str(config.paths.root), version=__version__)
    async with AsyncExitStack() as stack:
        if manager is not None:
            stack.enter_context(manager.watched())
        parts = await stack.enter_async_context(assemble(config, identity, ending))
        await stack.enter_async_context(_beside(parts, ending, manager))
        await parts.serve()
        with announced(config.paths.daemon_file, _daemon_file(config, identity, parts)):
            end = await _between(config, parts, ending, manager)
    _log.info("daemon_ended", reason=end.reason, exit_code=int(end.exit_code))
    return end.exit_code


async def _between(config: Config, parts: Parts, ending: Ending, manager: Manager | None) -> End:
    """Recover and serve until the end is asked for; it may be asked for at any time."""
    recovery = asyncio.ensure_future(parts.recover())
    asked = asyncio.ensure_future(ending.asked())
    try:
        await asyncio.wait((recovery, asked), return_when=asyncio.FIRST_COMPLETED)
        if not asked.done():
            await recovery
            if manager is not None:
                manager.ready()
            _log.info("daemon_serving", socket=str(config.socket), pid=os.getpid())
        end = await asked
    finally:
        recovery.cancel()
        asked.cancel()
    if manager is not None:
        manager.stopping()
    _log.info("daemon_stopping", reason=end.reason)
    try:
        async with asyncio.timeout(STOP_TIMEOUT.total_seconds()):
            await parts.stop(end)
    except TimeoutError:
        # All that was acknowledged is durable; what hangs is not worth waiting for.
        _log.warning("daemon_stop_timed_out", after=STOP_TIMEOUT.total_seconds())
    return end


@asynccontextmanager
async def _beside(parts: Parts, ending: Ending, manager: Manager | None) -> AsyncGenerator[None]:
    """Run the side tasks; none of them outlives this."""
    works = dict(parts.side_tasks())
    if manager is not None:
        works["standing"] = partial(parts.follow_standing, manager.status)
    tasks = [
        asyncio.create_task(_watched(name, work, ending), name=name) for name, work in works.items()
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _watched(name: str, work: Callable[[], Awaitable[object]], ending: Ending) -> None:
    incident = _incident()
    try:
        await work()
    except Exception:  # noqa: BLE001 - supervision
        _log.exception("side_task_failed", task=name, incident_id=incident)
    else:
        _log.error("side_task_ended", task=name, incident_id=incident)
    ending.ask(End(reason=f"{name} ended unexpectedly ({incident})", exit_code=Exit.BUG))


def _listen_to_signals(ending: Ending) -> None:
    loop = asyncio.get_running_loop()
    heard = False

    def hear(number: signal.Signals) -> None:
        nonlocal heard
        if heard:
            _log.warning("daemon_ended", reason=f"second {number.name}")
            os._exit(128 + number)
        heard = True
        ending.ask(End(reason=f"the daemon was told to stop ({number.name})"))

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, hear, number)


def _daemon_file(config: Config, identity: Identity, parts: Parts) -> DaemonFile:
    return DaemonFile(
        protocol=PROTOCOL,
        instance_id=identity.instance_id,
        store_id=parts.store_id,
        pid=os.getpid(),
        version=__version__,
        socket=str(config.socket),
        token_file=str(config.paths.token),
        state_dir=str(config.paths.root),
    )


def _incident() -> str:
    return f"inc_{secrets.token_hex(5)}"
