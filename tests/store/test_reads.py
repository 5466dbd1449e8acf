from __future__ import annotations

import asyncio
import random

import pytest

from crewd.core.changes import Changes
from crewd.core.errors import CrewdError, Reason
from crewd.core.model import Ask, Outbox, Run
from crewd.core.words import AskStatus, AttemptStatus, OutboxKind, RunStatus, TaskStatus
from crewd.store import AskFilter, Cursor, EventQuery, Page, RunFilter
from tests.store.samples import Store, a_run, a_task, an_ask, an_attempt, entries

ALL = Page(limit=1000)


async def ids(store: Store, which: RunFilter, page: Page = ALL) -> list[str]:
    return [run.id for run in (await store.reads.list_runs(which, page)).rows]


async def all_pages(store: Store, limit: int) -> list[Run]:
    found: list[Run] = []
    cursor: Cursor | None = None
    while True:
        listed = await store.reads.list_runs(RunFilter(), Page(limit=limit, after=cursor))
        found += listed.rows
        if listed.next is None:
            return found
        cursor = listed.next


async def test_unfinished_runs_come_first_then_the_newest(store: Store) -> None:
    for created, status in enumerate(RunStatus):
        await store.add(a_run(f"run_{status}", status, created=created))

    assert await ids(store, RunFilter()) == [
        "run_cancelling",
        "run_blocked",
        "run_running",
        "run_planning",
        "run_queued",
        "run_cancelled",
        "run_failed",
        "run_completed",
    ]


async def test_runs_are_narrowed_by_status_directory_and_labels(store: Store) -> None:
    await store.add(a_run("run_1", created=1, cwd="/a", labels={"team": "x", "k": "v"}))
    await store.add(a_run("run_2", RunStatus.FAILED, created=2, cwd="/a", labels={"team": "x"}))
    await store.add(a_run("run_3", created=3, cwd="/b", labels={"team": 'y\'s "best"'}))

    assert await ids(store, RunFilter(statuses=[RunStatus.FAILED])) == ["run_2"]
    assert await ids(store, RunFilter(cwd="/a")) == ["run_1", "run_2"]
    assert await ids(store, RunFilter(cwd="/a", statuses=[RunStatus.RUNNING])) == ["run_1"]
    assert await ids(store, RunFilter(labels={"team": "x"})) == ["run_1", "run_2"]
    assert await ids(store, RunFilter(labels={"team": "x", "k": "v"})) == ["run_1"]
    assert await ids(store, RunFilter(labels={"team": 'y\'s "best"'})) == ["run_3"]
    assert await ids(store, RunFilter(labels={"team": "z"})) == []


async def test_a_run_that_changes_its_status_moves(store: Store) -> None:
    run = a_run(created=1)
    await store.add(run)
    await store.add(a_run("run_b", RunStatus.COMPLETED, created=2))
    assert await ids(store, RunFilter()) == ["run_a", "run_b"]

    run.status = RunStatus.COMPLETED
    await store.log.append("run_a", [], Changes(run=run))
    assert await ids(store, RunFilter()) == ["run_b", "run_a"]


@pytest.mark.parametrize("limit", [1, 3, 7, 20])
async def test_pages_hold_every_run_once(store: Store, limit: int) -> None:
    statuses = list(RunStatus)
    for created in range(20):
        status = statuses[created % len(statuses)]
        await store.add(a_run(f"run_{created:02}", status, created=created // 3))

    whole = (await store.reads.list_runs(RunFilter(), ALL)).rows
    assert len(whole) == 20
    assert await all_pages(store, limit) == whole


async def test_pages_are_stable_while_runs_are_added(store: Store) -> None:
    for created in range(30):
        status = random.choice(list(RunStatus))  # noqa: S311 - any will do
        await store.add(a_run(f"run_{created}", status, created=created))

    async def add_more() -> None:
        for created in range(100, 140):
            await store.add(a_run(f"run_{created}", RunStatus.COMPLETED, created=created))

    async with asyncio.TaskGroup() as group:
        adding = group.create_task(add_more())
        while not adding.done():
            found = [run.id for run in await all_pages(store, 4)]
            assert len(found) == len(set(found))
            assert {f"run_{created}" for created in range(30)} <= set(found)


async def test_a_cursor_of_another_list_is_refused(store: Store) -> None:
    with pytest.raises(CrewdError) as refusal:
        await store.reads.list_runs(RunFilter(), Page(limit=1, after=(1, "x")))

    assert refusal.value.reason is Reason.PAGE_TOKEN_INVALID


async def test_tasks_are_listed_in_position_order(store: Store) -> None:
    tasks = [a_task(i, status=TaskStatus.QUEUED if i % 2 else TaskStatus.FAILED) for i in range(12)]
    await store.add(a_run(), tasks=tasks[::-1])

    first = await store.reads.list_tasks("run_a", Page(limit=5))
    second = await store.reads.list_tasks("run_a", Page(limit=7, after=first.next))
    failed = await store.reads.list_tasks("run_a", ALL, [TaskStatus.FAILED])
    assert first.rows + second.rows == tasks
    assert second.next is None
    assert failed.rows == tasks[::2]


async def test_a_list_says_as_of_when_it_is(store: Store) -> None:
    await store.add(a_run(), events=7)

    listed = await store.reads.list_runs(RunFilter(), ALL)
    assert listed.as_of_sequence == 7


async def test_only_committed_rows_are_read(store: Store) -> None:
    seen = 0
    done = False

    async def read() -> None:
        nonlocal seen
        while not done:
            page = await store.reads.list_events(EventQuery(run_id="run_a", limit=1000))
            published = len(store.published)
            found = await store.reads.list_events(EventQuery(run_id="run_a", limit=1000))
            assert len(page.entries) % 5 == 0
            assert len(found.entries) >= published
            assert len(found.entries) >= seen
            seen = len(found.entries)

    reading = asyncio.create_task(read())
    for _ in range(100):
        await store.log.append("run_a", entries(store.log, 5), Changes())
    done = True
    await reading


async def test_attempts_are_found_by_number_and_the_latest_by_none(store: Store) -> None:
    attempts = [an_attempt(number) for number in (1, 2, 3)]
    changes = Changes(run=a_run(), run_is_new=True, added_tasks=[a_task()], added_attempts=attempts)
    await store.log.append("run_a", [], changes)

    assert await store.reads.list_attempts("run_a", "t0") == attempts
    assert await store.reads.get_attempt("run_a", "t0", 2) == attempts[1]
    assert await store.reads.get_attempt("run_a", "t0") == attempts[2]
    assert await store.reads.get_attempt("run_a", "t1") is None


async def test_open_questions_come_first_then_the_newest(store: Store) -> None:
    asks = [an_ask(f"ask_{i}", created=i) for i in range(6)]
    for ask, status in zip(asks, [*AskStatus], strict=True):
        ask.status = status
    asks.append(an_ask("ask_6", created=6))
    asks[6].workspace_cwd = "/here"
    await store.log.append("run_a", [], Changes(run=a_run(), run_is_new=True, asks=asks))

    async def listed(which: AskFilter, page: Page = ALL) -> list[Ask]:
        return (await store.reads.list_asks(which, page)).rows

    ordered = [asks[i] for i in (6, 0, 5, 4, 3, 2, 1)]
    assert await listed(AskFilter()) == ordered
    assert await listed(AskFilter(run_id="run_a")) == ordered
    assert await listed(AskFilter(run_id="run_b")) == []
    assert await listed(AskFilter(cwd="/here")) == [asks[6]]
    assert await listed(AskFilter(statuses=[AskStatus.DECLINED])) == [asks[2]]
    first = await store.reads.list_asks(AskFilter(), Page(limit=3))
    assert first.rows + await listed(AskFilter(), Page(limit=9, after=first.next)) == ordered
    assert await store.reads.get_ask("ask_3") == asks[3]
    assert await store.reads.counts() == (1, 2)


def a_waiting_task() -> Changes:
    """Build a run with one settled task, and one at its second attempt that asks."""
    tasks = [a_task(0), a_task(1, status=TaskStatus.COMPLETED)]
    tasks[0].attempt = 2
    attempts = [an_attempt(1), an_attempt(2), an_attempt(1, "t1")]
    attempts[0].status = attempts[2].status = AttemptStatus.ENDED
    asks = [an_ask("ask_open"), an_ask("ask_answered"), an_ask("ask_past")]
    asks[1].status = asks[2].status = AskStatus.ANSWERED
    asks[2].task_id = "t1"
    outbox = [
        Outbox(run_id="run_a", task_id="t0", attempt=2, seq=n, kind=OutboxKind.STEER, body="{}")
        for n in (1, 2, 3)
    ]
    return Changes(
        run=a_run(),
        run_is_new=True,
        added_tasks=tasks,
        added_attempts=attempts,
        asks=asks,
        outbox=outbox,
        outbox_taken=[("t0", 2, 2)],
    )


async def test_a_run_is_loaded_with_what_can_still_matter(store: Store) -> None:
    changes = a_waiting_task()
    await store.log.append("run_a", [], changes)

    loaded = await store.reads.load("run_a")
    assert loaded is not None
    assert loaded.run == a_run()
    assert loaded.tasks == changes.added_tasks
    assert loaded.attempts == [changes.added_attempts[1]]
    assert sorted(ask.id for ask in loaded.asks) == ["ask_answered", "ask_open"]
    assert loaded.outbox == changes.outbox[2:]


async def test_runs_that_are_not_finished_are_loaded_together(store: Store) -> None:
    await store.log.append("run_a", [], a_waiting_task())
    await store.add(a_run("run_done", RunStatus.COMPLETED))
    await store.add(a_run("run_b", RunStatus.BLOCKED, created=2), tasks=[a_task(0, "run_b")])

    assert await store.reads.open_runs() == ["run_a", "run_b"]
    loaded = await store.reads.load_open()
    assert loaded == [await store.reads.load("run_a"), await store.reads.load("run_b")]
    assert await store.reads.load("run_c") is None


async def test_ids_are_found_by_prefix(store: Store) -> None:
    for name in ("run_ab", "run_ac", "run_b"):
        await store.add(a_run(name))

    assert await store.reads.find_run_ids("run_a") == ["run_ab", "run_ac"]
    assert await store.reads.find_run_ids("run_", limit=1) == ["run_ab"]
    assert await store.reads.find_run_ids("run_c") == []
