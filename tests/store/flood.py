"""A program that appends as fast as it can and says what was published, until it is killed."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

from crewd.core.changes import Changes
from crewd.store import Batch, Log
from tests.store.samples import a_run, a_task, entries

PRODUCERS = 8
FATAL_EXIT = 7


def tell(batches: Sequence[Batch]) -> None:
    lines = [f"{b.run_id} {e.sequence} {e.run_sequence}\n" for b in batches for e in b.entries]
    os.write(1, "".join(lines).encode())


def die(error: BaseException) -> None:
    os.write(1, f"fatal {error}\n".encode())
    os._exit(FATAL_EXIT)


async def produce(log: Log, run_id: str) -> None:
    run, task = a_run(run_id), a_task(run_id=run_id)
    await log.append(run_id, [], Changes(run=run, run_is_new=True, added_tasks=[task]))
    while True:
        taken = entries(log, 3)
        run.last_sequence = task.last_sequence = taken[-1].sequence
        await log.append(run_id, taken, Changes(run=run, tasks=[task]))


async def main(path: Path) -> None:
    log = Log(path, on_commit=tell, on_state=print, on_fatal=die)
    runs = [f"run_{log.next_sequence}_{number}" for number in range(PRODUCERS)]
    await asyncio.gather(*(produce(log, run_id) for run_id in runs))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        most = int(sys.argv[2])
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    asyncio.run(main(Path(sys.argv[1])))
