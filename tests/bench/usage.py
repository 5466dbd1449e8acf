"""What processes use, as the kernel and SQLite count it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from struct import unpack_from

_TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
_PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20
_UTIME = 11
_CHANGES_AT = 8


def cpu_ms(pid: int) -> float:
    """Give the CPU time of a process so far, without its children, to 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[_UTIME]) + int(fields[_UTIME + 1])) * _TICK_MS


def threads_cpu_ms(pid: int) -> float:
    """Give the CPU time of the threads that live now, to the nanosecond."""
    stats = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(stat.read_text().split()[0]) for stat in stats) / 1e6


def resident_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_MIB


def shared_out_mib(pid: int) -> float:
    """Give the process's part of the memory: what n processes share counts 1/n for each."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def commits(database: Path) -> int:
    """Give SQLite's own count of commits, from the header of the WAL's index."""
    with database.with_name(f"{database.name}-shm").open("rb") as index:
        (count,) = unpack_from("=I", index.read(64), _CHANGES_AT)
    return int(count)


def files_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if not path.is_dir()}


def folders_touched(folder: Path, since_ns: int) -> list[Path]:
    """Give the folders in which a name came or went, even one that is gone again."""
    folders: Iterable[Path] = (folder, *(path for path in folder.rglob("*") if path.is_dir()))
    return [path for path in folders if path.stat().st_mtime_ns > since_ns]
