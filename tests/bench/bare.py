"""A bare asyncio spawn loop, in a process of its own: what everything is compared with.

`python -m tests.bench.bare COUNT WIDTH WATCHER` prints what it took. WATCHER is `default` or
`pidfd`. The names are those of Python 3.11; from 3.12 on the default uses a pidfd by itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from typing import Any, NamedTuple

TRUE = "/usr/bin/true"
_ROOT = Path(__file__).parents[2]
_SECONDS = 120.0


class Bare(NamedTuple):
    """Milliseconds for each process, and what told that it had ended."""

    wall: float
    own_cpu: float
    children_cpu: float
    watcher: str


async def bare_loop(count: int, width: int, watcher: str) -> Bare:
    """Have a fresh process spawn so many, and return what it says."""
    words = ("-m", "tests.bench.bare", str(count), str(width), watcher)
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, cwd=_ROOT, stdin=DEVNULL, stdout=PIPE
    )
    try:
        async with asyncio.timeout(_SECONDS):
            out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Bare(*json.loads(out))


async def spawn_all(count: int, width: int) -> None:
    gate = asyncio.Semaphore(width)

    async def spawn() -> None:
        async with gate:
            process = await asyncio.create_subprocess_exec(
                TRUE, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
            )
            await process.communicate()
            assert process.returncode == 0

    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(spawn())


def use_watcher(name: str) -> str:
    """Have children waited for as told, and return by what."""
    if sys.version_info >= (3, 12):
        return "pidfd"
    # Any: what 3.12 deprecates is all that 3.11 has.
    watchers: Any = asyncio
    if name == "pidfd":
        watchers.set_child_watcher(watchers.PidfdChildWatcher())
    return type(watchers.get_child_watcher()).__name__


async def measure(count: int, width: int, watcher: str) -> Bare:
    await spawn_all(width, width)
    before, start = os.times(), time.perf_counter()
    await spawn_all(count, width)
    wall, after = time.perf_counter() - start, os.times()
    own = after.user + after.system - before.user - before.system
    children = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    per_task = 1000 / count
    return Bare(wall * per_task, own * per_task, children * per_task, watcher)


if __name__ == "__main__":
    counted, wide, named = sys.argv[1:]
    print(json.dumps(asyncio.run(measure(int(counted), int(wide), use_watcher(named)))))
