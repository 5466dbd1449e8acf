"""An edge without runs: the real log, feed and server, and one run that talks without end.

`python -m tests.bench.broadcast FOLDER APPENDS SIZE` serves at FOLDER/s/crewd.sock, says `ready`,
and begins to append when it reads a line. Each append has SIZE events, as of an actor that drains;
the next waits for its commit. It ends when its stdin does.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast

from crewd.core.changes import Changes
from crewd.core.model import Run
from crewd.core.spec import RunSpec
from crewd.core.units import Instant
from crewd.core.words import RunStatus
from crewd.origin import Origin
from crewd.rpc.auth import Auth
from crewd.rpc.ports import HostView, Identity, Supervisor, Wiring
from crewd.rpc.server import Server
from crewd.runtime.feed import Feed
from crewd.runtime.tokens import TaskTokens
from crewd.store import ArtifactFiles, Entry, Log, Reads
from tests.bench.history import end

TOKEN = "of-the-bench"  # noqa: S105 - nobody else is there
RUN_ID = "run_talks"
DATA = b"\x08\x01" + b"\x1a\x00" + b"x" * 280


async def _no_drain(*, wait: bool) -> int:
    raise NotImplementedError(wait)


async def serve(folder: Path, appends: int, size: int) -> None:
    async with AsyncExitStack() as stack:
        feed = Feed()
        log = Log(folder / "crewd.db", on_commit=feed.publish, on_state=print, on_fatal=end)
        stack.push_async_callback(log.close)
        reads = Reads(folder / "crewd.db")
        stack.push_async_callback(reads.close)
        run = Run(id=RUN_ID, spec=RunSpec(cwd="/"), status=RunStatus.RUNNING)
        await log.append(RUN_ID, [], Changes(run=run, run_is_new=True))
        server = Server(_wiring(folder, log, reads, feed))
        await server.start()
        await server.set_serving(serving=True)
        stack.push_async_callback(server.stop, "done", restart_expected=False, grace_seconds=0)
        print("ready", flush=True)
        if await asyncio.to_thread(sys.stdin.readline):
            await _talk(log, run, appends, size)
            await asyncio.to_thread(sys.stdin.readline)


def _wiring(folder: Path, log: Log, reads: Reads, feed: Feed) -> Wiring:
    return Wiring(
        # Only streams of the log are asked for here: no run is decided.
        supervisor=cast("Supervisor", None),
        host=cast("HostView", None),
        drain=_no_drain,
        reads=reads,
        feed=feed,
        auth=Auth(TOKEN, TaskTokens(b"of a benchmark"), lambda: TOKEN),
        identity=Identity(
            version="bench",
            instance_id="bench",
            store_id=log.store_id,
            schema_version=log.schema_version,
            state_dir=folder,
            socket=folder / "s" / "crewd.sock",
            start_time=Instant(1),
            origin=Origin(),
        ),
        transcripts=folder / "transcripts",
        artifacts=ArtifactFiles(folder / "artifacts", reserve=0),
        config_dir=folder / "config",
    )


async def _talk(log: Log, run: Run, appends: int, size: int) -> None:
    for n in range(appends):
        await log.append(RUN_ID, _entries(log, "message_posted", size, n * size), Changes())
    run.status = RunStatus.COMPLETED
    run.last_sequence = log.next_sequence
    await log.append(RUN_ID, _entries(log, "run_finished", 1, appends * size), Changes(run=run))


def _entries(log: Log, kind: str, count: int, done: int) -> list[Entry]:
    first = log.take_sequences(count)
    return [
        Entry(
            sequence=first + n,
            run_sequence=done + n + 1,
            kind=kind,
            chatter=kind == "message_posted",
            data=DATA,
        )
        for n in range(count)
    ]


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), *map(int, sys.argv[2:])))
