from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from grpc import StatusCode

from crewd_client import (
    Client,
    CursorExpiredError,
    NotFoundError,
    SequenceError,
    read_output,
    watch_asks,
    watch_run,
)
from crewd_client.commands.lines import plain_line
from crewd_client.v1.ask_event_pb2 import AskOpened
from crewd_client.v1.ask_pb2 import ASK_STATUS_OPEN, Ask
from crewd_client.v1.attempt_event_pb2 import MessagePosted
from crewd_client.v1.event_pb2 import Event
from crewd_client.v1.run_event_pb2 import RunFinished, RunStarted
from crewd_client.v1.run_pb2 import RUN_STATUS_COMPLETED, Run
from crewd_client.v1.run_stream_pb2 import ReadOutputRequest
from tests.clients.support.fake_daemon import ASK, RUN, FakeDaemon
from tests.clients.support.wire import RefusedError


@pytest.fixture
async def client(daemon: FakeDaemon) -> AsyncIterator[Client]:
    daemon.add_run(Run())
    async with await Client.connect(state_dir=daemon.state_dir, env={}) as connected:
        yield connected


def said(text: str) -> Event:
    return Event(message_posted=MessagePosted(text=text))


def finished() -> Event:
    return Event(run_finished=RunFinished(), run_status=RUN_STATUS_COMPLETED)


async def test_a_watch_ends_with_the_run(daemon: FakeDaemon, client: Client) -> None:
    await daemon.emit(Event(run_started=RunStarted()))
    await daemon.emit(finished())

    assert [event.run_sequence async for event in watch_run(client, RUN)] == [1, 2]


@pytest.mark.parametrize("how", ["kill", "drain"])
async def test_a_watch_goes_on_over_restarts_with_every_event_once(
    daemon: FakeDaemon, client: Client, how: str
) -> None:
    away: list[bool] = []
    client.on_away = away.append
    seen: list[int] = []
    await daemon.emit(said("1"))
    async with asyncio.timeout(20):
        async for event in watch_run(client, RUN):
            seen.append(event.run_sequence)
            if event.run_sequence in {1, 3}:
                await (daemon.drain() if how == "drain" else daemon.stop())
                daemon.socket = daemon.socket.with_suffix(".again")
                await daemon.start()
            if event.run_sequence == 5:
                await daemon.emit(finished())
            elif event.run_sequence < 5:
                await daemon.emit(said("next"))

    assert seen == [1, 2, 3, 4, 5, 6]
    assert away == [True, False, True, False]


def test_a_long_message_is_one_line_of_at_most_500_characters() -> None:
    line = plain_line(
        Event(kind="message_posted", message_posted=MessagePosted(text="word " * 999))
    )
    assert line is not None
    _, said = line.split(" ", 1)
    assert (len(said), said[-1], "\n" in said) == (500, "…", False)
    short = Event(kind="message_posted", message_posted=MessagePosted(text="w" * 500))
    assert (plain_line(short) or "").endswith("w" * 500)


def test_a_question_is_told_whole() -> None:
    ask = Ask(id=ASK, question="q" * 2000)
    line = plain_line(Event(kind="ask_opened", ask_opened=AskOpened(ask=ask)))
    assert "q" * 2000 in (line or "")


async def test_a_watch_may_begin_anywhere(daemon: FakeDaemon, client: Client) -> None:
    for text in "abc":
        await daemon.emit(said(text))
    await daemon.emit(finished())

    after = daemon.events[1].sequence
    assert [e.run_sequence async for e in watch_run(client, RUN, after)] == [3, 4]


@pytest.mark.parametrize(
    ("number", "problem"), [(3, "number 3 of its run, not 2"), (1, "number 1 of its run")]
)
async def test_a_hole_or_a_repetition_is_told(
    daemon: FakeDaemon, client: Client, number: int, problem: str
) -> None:
    await daemon.emit(said("a"))
    await daemon.emit(finished())
    daemon.events[1].run_sequence = number

    with pytest.raises(SequenceError, match=problem):
        _ = [event async for event in watch_run(client, RUN)]


async def test_a_filtered_watch_may_leave_events_out(daemon: FakeDaemon, client: Client) -> None:
    await daemon.emit(said("a"))
    await daemon.emit(finished())
    daemon.events[1].run_sequence = 9

    kinds = ("message_posted", "run_finished")
    assert len([event async for event in watch_run(client, RUN, kinds=kinds)]) == 2


async def test_another_store_after_a_restart_ends_the_watch(
    daemon: FakeDaemon, client: Client
) -> None:
    await daemon.emit(said("a"))

    async with aclosing(watch_run(client, RUN)) as events:
        await anext(events)
        await daemon.stop()
        daemon.store_id = "restored"
        await daemon.start()
        with pytest.raises(CursorExpiredError):
            await anext(events)


async def test_a_cursor_of_another_store_is_refused(daemon: FakeDaemon, client: Client) -> None:
    await daemon.emit(said("a"))

    with pytest.raises(CursorExpiredError):
        await anext(watch_run(client, RUN, 1, store_id="another"))


async def test_a_refusal_ends_the_watch(daemon: FakeDaemon, client: Client) -> None:
    daemon.refusals["WatchRun"] = [RefusedError(StatusCode.NOT_FOUND, "RUN_NOT_FOUND", "gone")]

    with pytest.raises(NotFoundError, match="gone"):
        _ = [event async for event in watch_run(client, RUN)]


async def test_a_state_watch_begins_anew_and_tells_what_is_gone(
    daemon: FakeDaemon, client: Client
) -> None:
    for name in ("a", "b"):
        daemon.asks[name] = Ask(id=name, status=ASK_STATUS_OPEN)
    async with asyncio.timeout(20), aclosing(watch_asks(client)) as changes:
        first = await anext(changes)
        await daemon.drain()
        del daemon.asks["a"]
        daemon.asks[ASK] = Ask(id=ASK)
        await daemon.start()
        second = await anext(changes)

    assert [ask.id for ask in first.items] == ["a", "b"]
    assert [ask.id for ask in second.items] == ["b", ASK]
    assert second.removed_ids == ("a",)
    assert first.complete
    assert second.complete


async def test_output_goes_on_where_it_broke_off(daemon: FakeDaemon, client: Client) -> None:
    daemon.output = b"0123456789" * 3
    read = b""
    request = ReadOutputRequest(run_id=RUN, task_id="t")

    async with asyncio.timeout(20):
        async for part in read_output(client, request):
            read += part.data
            if part.offset == 7:
                await daemon.stop()
                await daemon.start()

    assert read == daemon.output
