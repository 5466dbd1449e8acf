from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.store.flood import FATAL_EXIT
from tests.store.samples import Store

ROOT = Path(__file__).parents[2]
MIB = 1024 * 1024


@contextmanager
def flood(path: Path, *arguments: str) -> Generator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.store.flood", str(path), *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def told_until_killed(path: Path, lines: int) -> list[tuple[str, int]]:
    """Kill the program in the middle of its work; return what it had published by then."""
    with flood(path) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        told += process.stdout.read().splitlines(keepends=True)
    whole = [line.split() for line in told if line.endswith("\n")]
    return [(run_id, int(sequence)) for run_id, sequence, _ in whole]


def stored_events(path: Path) -> set[tuple[str, int]]:
    with closing(sqlite3.connect(path)) as connection:
        return set(connection.execute("SELECT run_id, sequence FROM event").fetchall())


async def test_what_was_published_survives_a_kill_and_no_sequence_comes_twice(
    tmp_path: Path,
) -> None:
    path = tmp_path / "crewd.db"
    published: list[tuple[str, int]] = []
    for lines in (20, 300, 1000):
        published += told_until_killed(path, lines)
        async with Store(path) as store:
            assert store.log.next_sequence > published[-1][1]
        assert stored_events(path) >= set(published)

    sequences = [sequence for _, sequence in published]
    assert sequences == sorted(set(sequences))


async def test_rows_and_events_of_an_append_survive_together(tmp_path: Path) -> None:
    path = tmp_path / "crewd.db"
    told_until_killed(path, 200)

    async with Store(path) as store:
        for loaded in await store.reads.load_open():
            last = await store.reads.last_sequence(loaded.run.id)
            assert loaded.run.last_sequence == last
            assert [task.last_sequence for task in loaded.tasks] == [last]


async def test_an_error_of_the_file_ends_the_daemon(tmp_path: Path) -> None:
    with flood(tmp_path / "crewd.db", str(2 * MIB)) as process:
        output, _ = process.communicate(timeout=30)

    assert process.returncode == FATAL_EXIT
    assert output.splitlines()[-1] == "fatal disk I/O error"
