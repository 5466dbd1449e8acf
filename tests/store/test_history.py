from __future__ import annotations

from crewd.core.changes import Changes
from crewd.store import Entry, EventPage, EventQuery
from tests.store.samples import Store, entries


async def write(store: Store, count: int, kind: str = "a", data: bytes = b"x") -> list[Entry]:
    written = entries(store.log, count, kind, data)
    await store.log.append("run_a", written, Changes())
    return written


async def page(store: Store, query: EventQuery) -> EventPage:
    return await store.reads.list_events(query)


async def test_events_come_back_as_they_were_appended(store: Store) -> None:
    written = await write(store, 3, data=bytes(range(256)))

    assert await page(store, EventQuery(run_id="run_a")) == EventPage(
        entries=written, searched_sequence=3, at_end=True, as_of_sequence=3
    )


async def test_a_page_ends_at_its_limit(store: Store) -> None:
    written = await write(store, 5)

    first = await page(store, EventQuery(run_id="run_a", limit=3))
    query = EventQuery(run_id="run_a", after_sequence=first.searched_sequence, limit=3)
    second = await page(store, query)
    assert first.entries + second.entries == written
    assert (first.at_end, second.at_end) == (False, True)


async def test_a_page_that_ends_with_the_last_event_is_at_the_end(store: Store) -> None:
    await write(store, 3)

    assert (await page(store, EventQuery(run_id="run_a", limit=3))).at_end


async def test_a_page_is_cut_at_its_bytes_but_never_empty(store: Store) -> None:
    await write(store, 4, data=bytes(100))

    for most, count in ((1, 1), (100, 1), (299, 2), (300, 3), (400, 4)):
        found = await page(store, EventQuery(run_id="run_a", max_bytes=most))
        assert len(found.entries) == count
        assert found.searched_sequence == count
        assert found.at_end == (count == 4)


async def test_kinds_narrow_and_the_search_goes_on_behind_them(store: Store) -> None:
    await write(store, 2)
    wanted = await write(store, 1, kind="b")
    await write(store, 3)

    found = await page(store, EventQuery(run_id="run_a", kinds=("b", "c")))
    assert found.entries == wanted
    assert found.searched_sequence == 6
    assert found.at_end


async def test_looking_for_a_rare_kind_pauses(store: Store) -> None:
    await write(store, 5000)
    wanted = await write(store, 1, kind="b")

    first = await page(store, EventQuery(run_id="run_a", kinds=("b",)))
    assert (first.entries, first.searched_sequence, first.at_end) == ([], 4096, False)
    after = first.searched_sequence
    second = await page(store, EventQuery(run_id="run_a", after_sequence=after, kinds=("b",)))
    assert (second.entries, second.at_end) == (wanted, True)


async def test_a_cursor_at_the_end_finds_nothing_and_stays(store: Store) -> None:
    await write(store, 2)

    found = await page(store, EventQuery(run_id="run_a", after_sequence=2))
    assert (found.entries, found.searched_sequence, found.at_end) == ([], 2, True)
    assert await store.reads.last_sequence("run_a") == 2
    assert await store.reads.last_sequence("run_b") == 0
