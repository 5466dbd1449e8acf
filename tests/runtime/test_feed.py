from __future__ import annotations

import asyncio

from crewd.runtime.feed import Bell, Feed
from crewd.store import Batch, Entry

SOON = 5.0
"""Longer than anything here takes."""
NOW = 0.0


def an_entry(sequence: int, *, kind: str = "task_finished", chatter: bool = False) -> Entry:
    return Entry(
        sequence=sequence, run_sequence=sequence, kind=kind, chatter=chatter, data=b"x" * 100
    )


def a_batch(run_id: str, *entries: Entry, deleted: bool = False, **ids: tuple[str, ...]) -> Batch:
    return Batch(
        run_id=run_id,
        entries=entries,
        run_changed=True,
        task_ids=ids.get("task_ids", ()),
        ask_ids=ids.get("ask_ids", ()),
        deleted=deleted,
    )


def test_a_watcher_takes_what_is_after_its_cursor_and_no_more_than_it_wants() -> None:
    feed = Feed()
    with feed.watch("run_a") as watcher:
        feed.publish([a_batch("run_a", *map(an_entry, (3, 5, 9)))])
        assert [e.sequence for e in watcher.take(3, 10) or ()] == [5, 9]
        assert [e.sequence for e in watcher.take(0, 2) or ()] == [3, 5]
        assert watcher.take(9, 10) == []
    assert feed.last_sequence == 9


def test_all_that_is_published_after_registering_can_be_taken() -> None:
    feed = Feed()
    feed.publish([a_batch("run_a", an_entry(1))])
    with feed.watch("run_a") as watcher:
        feed.publish([a_batch("run_b", an_entry(2)), a_batch("run_a", an_entry(3))])
        assert [e.sequence for e in watcher.take(1, 10) or ()] == [3]


def test_a_tail_that_is_full_forgets_and_sends_who_is_behind_to_the_store() -> None:
    feed = Feed(tail_bytes=3_000)
    with feed.watch("run_a") as watcher:
        for sequence in range(1, 101):
            feed.publish([a_batch("run_a", an_entry(sequence))])
        recent = watcher.take(98, 10)
        assert watcher.take(0, 10) is None
        assert [e.sequence for e in recent or ()] == [99, 100]


def test_it_is_told_how_far_back_the_tail_is_known_to_reach() -> None:
    feed = Feed()
    with feed.watch("run_a") as early:
        feed.publish([a_batch("run_b", an_entry(7))])
        with feed.watch("run_b") as late:
            assert not early.reaches(7)
            assert (late.reaches(6), late.reaches(7)) == (False, True)


def test_nothing_is_kept_for_runs_nobody_watches() -> None:
    feed = Feed()
    with feed.watch("run_a"):
        pass
    feed.publish([a_batch("run_a", an_entry(1))])
    with feed.watch("run_a") as watcher:
        assert watcher.take(0, 10) is None
        assert watcher.take(1, 10) == []


async def test_a_bell_rung_before_the_wait_is_not_missed() -> None:
    bell = Bell()
    bell.ring()
    assert await bell.wait(SOON)
    assert not await bell.wait(NOW)


async def test_a_watcher_is_woken_by_its_own_run_only() -> None:
    feed = Feed()
    with feed.watch("run_a") as mine, feed.watch("run_b") as other:
        waiting = asyncio.create_task(mine.news.wait(SOON))
        await asyncio.sleep(0)
        feed.publish([a_batch("run_a", an_entry(1))])
        assert await waiting
        assert not await other.news.wait(NOW)


async def test_a_watcher_of_some_kinds_sleeps_through_the_others() -> None:
    feed = Feed()
    with feed.watch("run_a", {"run_finished"}) as watcher:
        feed.publish([a_batch("run_a", an_entry(1))])
        assert not await watcher.news.wait(NOW)
        feed.publish([a_batch("run_a", an_entry(2, kind="run_finished"))])
        assert await watcher.news.wait(NOW)


async def test_chatter_may_linger_until_something_else_comes_or_there_is_much_of_it() -> None:
    feed = Feed()
    loop = asyncio.get_running_loop()
    with feed.watch("run_a") as watcher:
        feed.publish([a_batch("run_a", an_entry(1, chatter=True))])
        before = loop.time()
        await watcher.linger(0.02)
        assert loop.time() - before >= 0.015
        feed.publish([a_batch("run_a", *[an_entry(n, chatter=True) for n in range(2, 70)])])
        async with asyncio.timeout(SOON):
            await watcher.linger(1000)
        watcher.take(69, 10)
        feed.publish([a_batch("run_a", an_entry(70))])
        async with asyncio.timeout(SOON):
            await watcher.linger(1000)


async def test_changes_are_told_once_each_in_the_order_they_came() -> None:
    feed = Feed()
    with feed.watch_runs() as runs, feed.watch_asks() as asks, feed.watch_tasks("run_b") as tasks:
        for run_id in ("run_b", "run_a", "run_b"):
            feed.publish([a_batch(run_id, task_ids=("t",), ask_ids=("ask_a",))])
        assert (runs.take(), asks.take(), tasks.take()) == (["run_b", "run_a"], ["ask_a"], ["t"])
        assert runs.take() == []
        assert await tasks.news.wait(NOW)


def test_a_deleted_run_is_told_to_those_who_hold_what_belonged_to_it() -> None:
    feed = Feed()
    with feed.watch_runs() as runs, feed.watch_asks() as asks, feed.watch_tasks("run_a") as tasks:
        feed.publish([a_batch("run_a", an_entry(1), deleted=True)])
        assert runs.take() == asks.take_deleted_runs() == tasks.take_deleted_runs() == ["run_a"]
