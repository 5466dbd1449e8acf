"""kill -9 of the daemon while workers are at work."""

from __future__ import annotations

import signal
from collections import Counter

import pytest

from crewd_client.v1.ask_pb2 import DELIVERY_DELIVERED
from crewd_client.v1.attempt_pb2 import OUTCOME_CANCELLED, OUTCOME_COMPLETED, OUTCOME_FAILED
from crewd_client.v1.run_pb2 import (
    RUN_STATUS_CANCELLED,
    RUN_STATUS_CANCELLING,
    RUN_STATUS_COMPLETED,
    RUN_STATUS_FAILED,
)
from crewd_client.v1.server_pb2 import HOST_STATUS_READY
from crewd_client.v1.spec_pb2 import FAILURE_MODE_CONTINUE, RunLimits
from crewd_client.v1.task_pb2 import TASK_STATUS_WAITING
from tests.support.daemon import Daemon, eventually
from tests.support.desk import Desk, plain, retries, worker

LINES = b"".join(b"line %d\n" % number for number in range(1, 201))


async def five_at_work(desk: Desk) -> str:
    """Start workers that sleep, print, talk, use tokens and ask; return once all are at it."""
    gate = f"wait {desk.root / 'gate'}"
    run_id = await desk.submit(
        plain("sleeps", gate, "exit 7"),
        plain("prints", "lines 100 0.005", gate, "lines 100 0"),
        worker("talks", "lines 200 0.005", "result talked"),
        worker("uses", "usage 100", gate, "usage 11", "result used"),
        worker("asks", "usage 5", "ask q", "result asked"),
        retry=retries(1),
        failure_mode=FAILURE_MODE_CONTINUE,
        limits=RunLimits(max_concurrent_workers=5),
    )
    for task_id in ("sleeps", "prints", "talks"):
        await desk.happened(run_id, "attempt_started", task_id)
    await desk.happened(run_id, "usage_reported", "uses")
    await desk.asked(run_id)
    return run_id


async def test_every_worker_ends_as_if_nothing_had_happened(daemon: Daemon, desk: Desk) -> None:
    run_id = await five_at_work(desk)
    await daemon.restart()
    (ask,) = await desk.open_asks(run_id)
    assert (await desk.task(run_id, "asks")).status == TASK_STATUS_WAITING
    (desk.root / "gate").touch()
    await desk.answer(ask.id, "yes")
    run = await desk.ended(run_id)
    assert run.status == RUN_STATUS_FAILED
    ends = {t: await desk.attempt(run_id, t) for t in await desk.tasks(run_id)}
    assert {t: a.number for t, a in ends.items()} == dict.fromkeys(ends, 1)
    assert {t: (a.outcome, a.exit_code) for t, a in ends.items()} == {
        **dict.fromkeys(("prints", "talks", "uses", "asks"), (OUTCOME_COMPLETED, 0)),
        "sleeps": (OUTCOME_FAILED, 7),
    }
    assert desk.never_twice()


async def test_output_is_whole_and_usage_counted_once(daemon: Daemon, desk: Desk) -> None:
    run_id = await five_at_work(desk)
    await daemon.restart()
    await daemon.restart()
    (desk.root / "gate").touch()
    await desk.answer((await desk.asked(run_id)).id, "yes")
    run = await desk.ended(run_id)
    assert (run.usage.input_tokens, run.usage.output_tokens) == (116, 3)
    assert run.usage.cost_micros == 3000
    twice = LINES[: LINES.index(b"line 101\n")] * 2
    assert await desk.output(run_id, "prints") == twice
    assert (await desk.output(run_id, "talks")).startswith(LINES)
    assert b"q answered yes\n" in await desk.output(run_id, "asks")


async def test_a_question_is_opened_once_and_answered_once(daemon: Daemon, desk: Desk) -> None:
    run_id = await five_at_work(desk)
    await daemon.restart()
    (desk.root / "gate").touch()
    (ask,) = await desk.open_asks()
    await desk.answer(ask.id, "yes")
    await daemon.restart()
    await desk.ended(run_id)
    (ask,) = await desk.asks(run_id)
    assert ask.delivery == DELIVERY_DELIVERED
    assert desk.heard("asks", "answer") == ["q"]
    told = await desk.counts(run_id)
    assert [told[f"ask_{what}"] for what in ("opened", "settled", "delivered")] == [1, 1, 1]


async def between_commit_and_delivery(daemon: Daemon, *, sent: bool) -> None:
    """Bring about that a write is committed now, but not delivered.

    `sent`: it lies in the socket of a host that is stopped; else the daemon has no host.
    """
    if not sent:
        daemon.kill()
    daemon.signal_host(signal.SIGSTOP)
    if not sent:
        await daemon.start()


async def after_a_kill(daemon: Daemon) -> None:
    daemon.kill()
    daemon.signal_host(signal.SIGCONT)
    await daemon.start()


@pytest.mark.parametrize("sent", [True, False])
async def test_an_answer_that_was_committed_is_delivered_once(
    daemon: Daemon, desk: Desk, *, sent: bool
) -> None:
    run_id = await desk.submit(worker("a", "ask q", "ask r", "result ok"))
    ask = await desk.asked(run_id)
    await between_commit_and_delivery(daemon, sent=sent)
    await desk.answer(ask.id, "blue")
    await after_a_kill(daemon)
    second = (await desk.happened(run_id, "ask_opened", times=2)).ask_opened.ask
    await desk.answer(second.id, "red")
    assert (await desk.ended(run_id)).status == RUN_STATUS_COMPLETED
    assert desk.heard("a", "answer") == ["q", "r"]
    output = await desk.output(run_id, "a")
    assert (output.count(b"q answered blue\n"), output.count(b"r answered red\n")) == (1, 1)
    assert (await desk.counts(run_id))["ask_delivered"] == 2


@pytest.mark.parametrize("sent", [True, False])
async def test_a_steer_that_was_committed_is_delivered_once(
    daemon: Daemon, desk: Desk, *, sent: bool
) -> None:
    run_id = await desk.submit(worker("a", "hello", "lines 1 0", "steer", "steer", "result ok"))
    await eventually(lambda: can_steer(desk, run_id), "the worker can be steered")
    await between_commit_and_delivery(daemon, sent=sent)
    await desk.steer(run_id, "a", "left")
    await after_a_kill(daemon)
    await desk.steer(run_id, "a", "right")
    assert (await desk.ended(run_id)).status == RUN_STATUS_COMPLETED
    assert len(desk.heard("a", "steer")) == 2
    output = await desk.output(run_id, "a")
    assert (output.count(b"steered left\n"), output.count(b"steered right\n")) == (1, 1)
    told = [e.steer_updated.status for e in await desk.events(run_id) if e.kind == "steer_updated"]
    assert Counter(told) == {1: 2, 2: 2, 3: 2}


async def can_steer(desk: Desk, run_id: str) -> bool:
    return (await desk.task(run_id, "a")).capabilities.can_steer


@pytest.mark.parametrize("sent", [True, False])
async def test_a_cancel_that_was_committed_is_carried_out(
    daemon: Daemon, desk: Desk, *, sent: bool
) -> None:
    run_id = await desk.submit(worker("a", "ask q"), plain("b", "wait /nowhere"))
    await desk.asked(run_id)
    await desk.happened(run_id, "attempt_started", "b")
    await between_commit_and_delivery(daemon, sent=sent)
    assert (await desk.cancel(run_id)).status == RUN_STATUS_CANCELLING
    await after_a_kill(daemon)
    run = await desk.ended(run_id)
    assert (run.status, run.open_ask_count) == (RUN_STATUS_CANCELLED, 0)
    for task_id in ("a", "b"):
        attempt = await desk.attempt(run_id, task_id)
        assert (attempt.outcome, attempt.number) == (OUTCOME_CANCELLED, 1)
    assert daemon.marked() == []
    assert (await desk.server()).host.status == HOST_STATUS_READY
