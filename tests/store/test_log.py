from __future__ import annotations

import asyncio
import random
import sqlite3
from pathlib import Path

import pytest

from crewd.core.changes import Changes
from crewd.core.units import Instant
from crewd.core.words import AttemptStatus, RunStatus, TaskStatus
from crewd.store import AppendFailed, EventQuery, Request
from tests.store.samples import Store, a_run, a_task, an_attempt, entries


async def test_an_append_is_durable_when_its_future_is_done(store: Store) -> None:
    await store.add(a_run())

    assert await store.reads.get_run("run_a") == a_run()


async def test_published_before_the_waiter_goes_on(store: Store) -> None:
    await store.add(a_run())

    assert [batch.run_id for batch in store.batches] == ["run_a"]


async def test_publishes_in_the_order_of_sequences(store: Store) -> None:
    async def produce(run_id: str) -> None:
        for count in range(50):
            await store.log.append(run_id, entries(store.log, count % 4), Changes())
            if random.random() < 0.2:  # noqa: S311 - only to vary the groups
                await asyncio.sleep(0)

    await asyncio.gather(*(produce(f"run_{i}") for i in range(20)))

    assert store.published == sorted(store.published)
    assert len(store.published) == 20 * sum(count % 4 for count in range(50))


async def test_a_batch_says_what_changed(store: Store) -> None:
    await store.add(a_run(), tasks=[a_task(0), a_task(1)])
    await store.log.append("run_a", [], Changes(tasks=[a_task(1)]))

    first, second = store.batches
    assert (first.run_changed, first.task_ids) == (True, ("t0", "t1"))
    assert (second.entries, second.run_changed, second.task_ids) == ((), False, ("t1",))


async def test_rows_are_stored_as_they_were_when_appended(store: Store) -> None:
    run = a_run()
    future = store.log.append("run_a", entries(store.log), Changes(run=run, run_is_new=True))
    run.status = RunStatus.FAILED
    await future

    assert await store.reads.get_run("run_a") == a_run()


async def test_insert_and_updates_in_one_group_leave_the_last_value(store: Store) -> None:
    run, task, attempt = a_run(), a_task(), an_attempt()
    new = Changes(run=run, run_is_new=True, added_tasks=[task], added_attempts=[attempt])
    futures = [store.log.append("run_a", entries(store.log), new)]
    for status in (RunStatus.BLOCKED, RunStatus.COMPLETED):
        run.status, task.status, attempt.status = status, TaskStatus.FAILED, AttemptStatus.ENDED
        run.title = task.status_reason = attempt.message = status
        changed = Changes(run=run, tasks=[task], attempts=[attempt])
        futures.append(store.log.append("run_a", entries(store.log), changed))
    await asyncio.gather(*futures)

    assert await store.reads.get_run("run_a") == run
    assert await store.reads.get_task("run_a", "t0") == task
    assert await store.reads.get_attempt("run_a", "t0") == attempt


async def test_only_the_offender_of_a_group_fails(store: Store) -> None:
    futures = [
        store.log.append(run.id, entries(store.log), Changes(run=run, run_is_new=True))
        for run in (a_run("run_a"), a_run("run_b"), a_run("run_b"), a_run("run_c"))
    ]
    results = await asyncio.gather(*futures, return_exceptions=True)

    assert [type(result) for result in results] == [
        type(None),
        type(None),
        AppendFailed,
        type(None),
    ]
    assert store.published == [1, 2, 4]
    assert await store.reads.find_run_ids("run_") == ["run_a", "run_b", "run_c"]


async def test_a_failed_append_leaves_nothing_behind(store: Store) -> None:
    with sqlite3.connect(store.path) as other:
        other.execute(
            "CREATE TRIGGER no_last BEFORE INSERT ON event WHEN new.kind = 'no'"
            " BEGIN SELECT raise(ABORT, 'refused'); END"
        )
    other.close()
    good = store.log.append("run_a", entries(store.log), Changes(run=a_run(), run_is_new=True))
    changes = Changes(run=a_run("run_b"), run_is_new=True)
    bad = store.log.append("run_b", entries(store.log, kind="no"), changes)
    with pytest.raises(AppendFailed, match=r"run_b: refused"):
        await bad
    await good

    assert await store.reads.get_run("run_b") is None
    assert (await store.reads.list_events(EventQuery(run_id="run_b"))).entries == []


async def test_updating_what_is_not_there_fails(store: Store) -> None:
    with pytest.raises(AppendFailed, match="not in task"):
        await store.log.append("run_a", [], Changes(tasks=[a_task()]))


async def test_what_cannot_be_encoded_fails_at_once(store: Store) -> None:
    task = a_task()
    task.open_ask_ids = ("\ud800",)
    with pytest.raises(AppendFailed):
        store.log.append("run_a", [], Changes(tasks=[task]))


async def test_text_that_is_not_unicode_fails_only_its_own_append(store: Store) -> None:
    bad = a_run("run_b")
    bad.title = "\ud800"
    futures = [
        store.log.append(run.id, [], Changes(run=run, run_is_new=True)) for run in (a_run(), bad)
    ]
    results = await asyncio.gather(*futures, return_exceptions=True)

    assert [type(result) for result in results] == [type(None), AppendFailed]


async def test_a_sequence_that_was_not_taken_is_refused(store: Store) -> None:
    (entry,) = entries(store.log)
    await store.log.append("run_a", [entry], Changes())
    with pytest.raises(ValueError, match="comes late"):
        store.log.append("run_a", [entry], Changes())


async def test_a_request_is_stored_with_what_it_did_or_not_at_all(store: Store) -> None:
    request = Request(
        id="r1", run_id="run_a", method="CreateRun", digest=b"d", response=b"r", time=Instant(5)
    )
    await store.log.append("run_a", [], Changes(run=a_run(), run_is_new=True), [request])
    again = Request(
        id="r2", run_id="run_a", method="CreateRun", digest=b"d", response=b"r", time=Instant(5)
    )
    with pytest.raises(AppendFailed):
        await store.log.append("run_a", [], Changes(run=a_run(), run_is_new=True), [again])

    assert await store.reads.find_request("r1") == request
    assert await store.reads.find_request("r2") is None


async def test_closing_commits_what_is_queued(tmp_path: Path) -> None:
    async with Store(tmp_path / "crewd.db") as store:
        changes = Changes(run=a_run(), run_is_new=True)
        future = store.log.append("run_a", entries(store.log), changes)
    assert future.done()
    with pytest.raises(AppendFailed, match="closed"):
        store.log.append("run_a", [], Changes())

    async with Store(tmp_path / "crewd.db") as store:
        assert await store.reads.get_run("run_a") == a_run()


async def test_sequences_go_on_above_what_was_committed(tmp_path: Path) -> None:
    async with Store(tmp_path / "crewd.db") as store:
        store.log.take_sequences(7)
        await store.add(a_run(), events=3)
        store_id = store.log.store_id

    async with Store(tmp_path / "crewd.db") as store:
        assert store.log.next_sequence == 11
        assert store.log.store_id == store_id
