"""Measures what must be fast and prints it beside its limit: `make bench`.

Ratios are taken side by side in one run, as medians of rounds. The exit code is 0 either way.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sqlite3
import sys
import time
import traceback
from collections.abc import AsyncIterator, Callable

import grpc

from crewd_client.errors import CrewdError
from tests.bench import (
    agents,
    append,
    asks,
    deaths,
    deliver,
    first_byte,
    graphs,
    idle,
    pages,
    plain_tasks,
    recovery,
    starts,
)
from tests.bench.place import a_folder, disk_of
from tests.bench.rows import Row, not_measured
from tests.bench.scale import Scale

Measure = Callable[[Scale], AsyncIterator[Row]]

GROUPS: dict[str, Measure] = {
    "plain": plain_tasks.measure,
    "graphs": graphs.measure,
    "first-byte": first_byte.measure,
    "append": append.measure,
    "deliver": deliver.measure,
    "asks": asks.measure,
    "recovery": recovery.measure,
    "pages": pages.measure,
    "deaths": deaths.measure,
    "idle": idle.measure,
    "starts": starts.measure,
    "agents": agents.measure,
}
_TROUBLE = (CrewdError, AssertionError, OSError, RuntimeError, ExceptionGroup)


def main() -> int:
    arguments = _arguments()
    begin = time.monotonic()
    with a_folder() as folder:
        disk = disk_of(folder)
        print(
            f"crewd bench: {os.cpu_count()} cores, {platform.system()} {platform.release()}, "
            f"Python {platform.python_version()}, grpc {grpc.__version__}, "
            f"SQLite {sqlite3.sqlite_version}\n"
            f"state in {folder} on {disk.kind} ({disk.source}); load {_load()}",
            flush=True,
        )
        scale = Scale(folder, quick=arguments.quick, say=_say)
        rows = asyncio.run(_measure(arguments.only or list(GROUPS), scale))
    missed = [row for row in rows if row.met is False]
    limits = sum(row.met is not None for row in rows)
    print(f"\n{time.monotonic() - begin:.0f} s; load {_load()}")
    for row in missed:
        print(row.line())
    print(f"{len(missed)} of {limits} limits missed")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="measure little, to see that it works")
    parser.add_argument("--only", action="append", choices=GROUPS, metavar="NAME", help="one group")
    return parser.parse_args()


async def _measure(names: list[str], scale: Scale) -> list[Row]:
    rows: list[Row] = []
    for name in names:
        print(f"\n{name} (load {_load()})", flush=True)
        async for row in _guarded(name, scale):
            print(row.line(), flush=True)
            rows.append(row)
    return rows


async def _guarded(name: str, scale: Scale) -> AsyncIterator[Row]:
    """Give the group's rows; one that breaks does not take the others with it."""
    try:
        async for row in GROUPS[name](scale):
            yield row
    except _TROUBLE as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        yield not_measured(name, f"{error!r} at {where.name}: {where.line}")


def _load() -> str:
    return " ".join(f"{average:.2f}" for average in os.getloadavg())


def _say(what: str) -> None:
    print(f"  ({what})", flush=True)


if __name__ == "__main__":
    sys.exit(main())
