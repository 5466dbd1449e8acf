"""Keep a database of the newest schema for the tests of all later ones.

Run `python -m tests.store.keep_database` once the schema is final, just before it is released.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

from crewd.core.changes import Changes
from crewd.core.model import Outbox
from crewd.core.units import Instant
from crewd.core.words import OutboxKind, RunStatus, TaskStatus
from crewd.store import Request
from crewd.store.db import known_migrations, open_writer
from tests.store.samples import Store, a_run, a_task, an_artifact, an_ask, an_attempt, entries

FOLDER = Path(__file__).parents[1] / "data" / "databases"
REQUEST = Request(
    id="r1", run_id="run_a", method="CreateRun", digest=b"d", response=b"r", time=Instant(5)
)


async def write(path: Path) -> None:
    async with Store(path) as store:
        message = Outbox(
            run_id="run_a", task_id="t0", attempt=1, seq=1, kind=OutboxKind.TASK, body="{}"
        )
        changes = Changes(
            run=a_run(labels={"team": "x"}),
            run_is_new=True,
            added_tasks=[a_task(0), a_task(1, status=TaskStatus.QUEUED)],
            added_attempts=[an_attempt()],
            asks=[an_ask()],
            artifacts=[an_artifact()],
            outbox=[message],
        )
        await store.log.append("run_a", entries(store.log, 3), changes, [REQUEST])
        await store.add(a_run("run_done", RunStatus.COMPLETED, created=2))


def main() -> None:
    version = known_migrations()[-1].version
    path = FOLDER / f"v{version}.db"
    path.unlink(missing_ok=True)
    asyncio.run(write(path))
    with closing(open_writer(path)[0]) as connection:
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()


if __name__ == "__main__":
    main()
