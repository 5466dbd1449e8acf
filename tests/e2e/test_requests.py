"""Writes that are sent twice, or by two at once."""

from __future__ import annotations

import asyncio

import pytest

from crewd_client import AskSettledError, RequestIdReusedError, list_runs
from crewd_client.v1.ask_pb2 import ASK_STATUS_ANSWERED, Ask
from crewd_client.v1.run_pb2 import RUN_STATUS_COMPLETED
from tests.support.daemon import Daemon
from tests.support.desk import Desk, shell, worker


async def test_a_run_created_twice_across_a_kill_is_one_run(daemon: Daemon, desk: Desk) -> None:
    mark = desk.root / "mark"
    task = shell("a", f"echo once >> {mark}")
    first = await desk.submit(task, request_id="same")
    await daemon.restart()
    assert await desk.submit(task, request_id="same") == first
    assert (await desk.ended(first)).status == RUN_STATUS_COMPLETED
    assert await desk.submit(task, request_id="same") == first
    assert [run.id async for run in list_runs(desk.client)] == [first]
    assert mark.read_text() == "once\n"
    with pytest.raises(RequestIdReusedError) as refused:
        await desk.submit(shell("a", "echo other"), request_id="same")
    assert refused.value.metadata["run_id"] == first
    with pytest.raises(RequestIdReusedError):
        await desk.answer_as("same", "ask_0000000000", "of another method")


async def test_creates_in_flight_at_the_same_time_are_one_run(desk: Desk) -> None:
    same = [desk.submit(shell("a", "true"), request_id="same") for _ in range(20)]
    assert len(set(await asyncio.gather(*same))) == 1


async def test_creates_in_flight_at_a_kill_are_one_run(daemon: Daemon, desk: Desk) -> None:
    creating = [
        asyncio.create_task(desk.submit(shell("a", "true"), request_id=f"same{number}"))
        for number in range(30)
    ]
    await asyncio.wait(creating, return_when=asyncio.FIRST_COMPLETED)
    await daemon.restart()
    created = await asyncio.gather(*creating)
    listed = [run.id async for run in list_runs(desk.client)]
    assert sorted(listed) == sorted(created)
    for run_id in created:
        assert (await desk.ended(run_id)).status == RUN_STATUS_COMPLETED


async def test_of_two_answers_one_wins_and_the_other_is_told_which(
    daemon: Daemon, desk: Desk
) -> None:
    run_id = await desk.submit(worker("a", "ask q", "result ok"))
    ask = await desk.asked(run_id)
    desks = [desk, await daemon.desk()]
    words = ["red", "blue"]
    answers = [each.answer(ask.id, word) for each, word in zip(desks, words, strict=True)]
    results = await asyncio.gather(*answers, return_exceptions=True)
    (won,) = [result for result in results if isinstance(result, Ask)]
    (lost,) = [result for result in results if isinstance(result, AskSettledError)]
    assert won.status == ASK_STATUS_ANSWERED
    assert won.answer.text == words[results.index(won)]
    assert lost.ask is not None
    assert (lost.ask.id, lost.ask.answer) == (ask.id, won.answer)
    await desk.ended(run_id)
    assert f"q answered {won.answer.text}\n".encode() in await desk.output(run_id, "a")
    assert desk.heard("a", "answer") == ["q"]
    with pytest.raises(AskSettledError) as late:
        await desk.answer(ask.id, "green")
    assert late.value.ask is not None
    assert late.value.ask.answer == won.answer


async def test_an_answer_repeated_across_a_kill_is_the_same_answer(
    daemon: Daemon, desk: Desk
) -> None:
    run_id = await desk.submit(worker("a", "ask q", "result ok"))
    ask = await desk.asked(run_id)
    first = await desk.answer_as("mine", ask.id, "yes")
    await daemon.restart()
    assert await desk.answer_as("mine", ask.id, "yes") == first
    await desk.ended(run_id)
    assert desk.heard("a", "answer") == ["q"]
