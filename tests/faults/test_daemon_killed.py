"""kill -9 of the daemon while workers are at work."""

from __future__ import annotations

import signal
from collections import Counter

import pytest

from crewd_client.v1.ask_pb2 import DELIVERY_DELIVERED
from crewd_client.v1.attempt_pb2 import OUTCOME_CANCELLED, OUTCOME_COMPLETED, OUTCOME_FAILED
from crewd_client.v1.run_pb2 import (
    RUN_STATUS_CANCELLED,
    RUN_STATUS_FAILED,
)
from crewd_client.v1.run_task_pb2 import CancelTasksRequest
from crewd_client.v1.spec_pb2 import FAILURE_MODE_CONTINUE, RunLimits
from crewd_client.v1.task_pb2 import (
    STEER_STATUS_DELIVERED,
    STEER_STATUS_QUEUED,
    STEER_STATUS_SEEN,
    TASK_STATUS_WAITING,
)
from tests.support.daemon import Daemon
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
    await daemon.restart()
    run = await desk.ended(run_id)
    assert run.status == RUN_STATUS_FAILED
    ends = {t: await desk.attempt(run_id, t) for t in await desk.tasks(run_id)}
    assert {t: (a.number, a.outcome, a.exit_code) for t, a in ends.items()} == {
        **dict.fromkeys(("prints", "talks", "uses", "asks"), (1, OUTCOME_COMPLETED, 0)),
        "sleeps": (1, OUTCOME_FAILED, 7),
    }
    assert desk.never_twice()
    await expect_whole_output(desk, run_id)
    await expect_one_question(desk, run_id)
    assert (run.usage.input_tokens, run.usage.output_tokens) == (116, 3)
    assert run.usage.cost_micros == 3000


async def expect_whole_output(desk: Desk, run_id: str) -> None:
    twice = LINES[: LINES.index(b"line 101\n")] * 2
    assert await desk.output(run_id, "prints") == twice
    assert (await desk.output(run_id, "talks")).startswith(LINES)
    assert b"q answered yes\n" in await desk.output(run_id, "asks")


async def expect_one_question(desk: Desk, run_id: str) -> None:
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


@pytest.mark.parametrize("sent", [True, False])
async def test_what_was_committed_is_delivered_once(
    daemon: Daemon, desk: Desk, *, sent: bool
) -> None:
    run_id = await desk.submit(
        worker("answered", "ask q", "ask r", "result ok"),
        worker("steered", "hello", "ask s", "steer", "steer", "result ok"),
        worker("stopped", "ask t"),
        plain("mute", f"wait {desk.root / 'gate'}"),
        failure_mode=FAILURE_MODE_CONTINUE,
    )
    for task_id in ("answered", "steered", "stopped"):
        await desk.asked(run_id, task_id)
    await desk.happened(run_id, "attempt_started", "mute")
    await between_commit_and_delivery(daemon, sent=sent)
    await desk.answer((await desk.asked(run_id, "answered")).id, "blue")
    await desk.answer((await desk.asked(run_id, "steered")).id, "red")
    await desk.steer(run_id, "steered", "left")
    await desk.client.runs.CancelTasks(
        CancelTasksRequest(run_id=run_id, task_ids=["stopped", "mute"])
    )
    daemon.kill()
    daemon.signal_host(signal.SIGCONT)
    await daemon.start()
    await expect_it_goes_on(desk, run_id)


async def expect_it_goes_on(desk: Desk, run_id: str) -> None:
    second = await desk.happened(run_id, "ask_opened", "answered", times=2)
    await desk.answer(second.ask_opened.ask.id, "green")
    await desk.steer(run_id, "steered", "right")
    assert (await desk.ended(run_id)).status == RUN_STATUS_CANCELLED
    ends = {t: (await desk.attempt(run_id, t)) for t in await desk.tasks(run_id)}
    assert {t: (a.number, a.outcome) for t, a in ends.items()} == {
        **dict.fromkeys(("answered", "steered"), (1, OUTCOME_COMPLETED)),
        **dict.fromkeys(("stopped", "mute"), (1, OUTCOME_CANCELLED)),
    }
    assert desk.heard("answered", "answer") == ["q", "r"]
    assert desk.heard("steered", "answer") == ["s"]
    assert len(desk.heard("steered", "steer")) == 2
    output = await desk.output(run_id, "steered")
    assert (output.count(b"steered left\n"), output.count(b"steered right\n")) == (1, 1)
    events = await desk.events(run_id)
    told = Counter(e.steer_updated.status for e in events if e.kind == "steer_updated")
    assert told == dict.fromkeys(
        (STEER_STATUS_QUEUED, STEER_STATUS_DELIVERED, STEER_STATUS_SEEN), 2
    )
    assert Counter(e.kind for e in events)["ask_delivered"] == 3
