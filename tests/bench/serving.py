"""How long a daemon takes from its start until it serves."""

from __future__ import annotations

import asyncio
import time

from crewd_client import Client
from crewd_client.errors import NoDaemonError, UnavailableError
from tests.support.daemon import Daemon

_LOOK_EVERY = 0.002
_SECONDS = 60.0


async def start(daemon: Daemon) -> float:
    """Start the process; return the seconds until it said that it serves and answered a call."""
    before = daemon.log.stat().st_size if daemon.log.exists() else 0
    begin = time.perf_counter()
    daemon.launch()
    async with asyncio.timeout(_SECONDS):
        while not _says_so(daemon, before):  # noqa: ASYNC110 - another process says it
            await asyncio.sleep(_LOOK_EVERY)
        await _call(daemon)
    return time.perf_counter() - begin


def _says_so(daemon: Daemon, offset: int) -> bool:
    if daemon.log.stat().st_size == offset:
        return False
    with daemon.log.open("rb") as log:
        log.seek(offset)
        return b"daemon_serving" in log.read()


async def _call(daemon: Daemon) -> None:
    while True:
        try:
            async with await Client.connect(state_dir=daemon.state_dir, env=daemon.env):
                return
        except (NoDaemonError, UnavailableError):
            await asyncio.sleep(_LOOK_EVERY)
