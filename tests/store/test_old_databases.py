from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from crewd.core.changes import Changes
from crewd.core.words import RunStatus
from crewd.store import EventQuery, Page, RunFilter
from tests.store.keep_database import FOLDER, REQUEST
from tests.store.samples import Store, an_artifact, entries

KEPT = sorted(FOLDER.glob("v*.db"))


def test_there_is_a_database_of_the_first_schema() -> None:
    assert "v1.db" in [path.name for path in KEPT]


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.stem)
async def test_an_old_database_is_read_and_written(kept: Path, tmp_path: Path) -> None:
    path = tmp_path / "crewd.db"
    shutil.copy(kept, path)

    async with Store(path) as store:
        listed = await store.reads.list_runs(RunFilter(), Page(limit=9))
        assert [(run.id, run.status) for run in listed.rows] == [
            ("run_a", RunStatus.RUNNING),
            ("run_done", RunStatus.COMPLETED),
        ]
        (loaded,) = await store.reads.load_open()
        assert loaded.run.spec.labels == {"team": "x"}
        assert [task.spec.command for task in loaded.tasks] == [("true",), ("true",)]
        assert [ask.id for ask in loaded.asks] == ["ask_a"]
        assert [message.seq for message in loaded.outbox] == [1]
        assert await store.reads.get_artifact("art_a") == an_artifact()
        assert await store.reads.find_request("r1") == REQUEST
        assert store.log.next_sequence == 5

        changes = Changes(run=loaded.run, tasks=loaded.tasks)
        await store.log.append("run_a", entries(store.log), changes)
        page = await store.reads.list_events(EventQuery(run_id="run_a"))
        assert [entry.sequence for entry in page.entries] == [1, 2, 3, 5]
