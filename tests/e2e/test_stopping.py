"""Cancel, stop and drain with workers that live."""

from __future__ import annotations

import asyncio

from crewd_client.v1.attempt_pb2 import OUTCOME_CANCELLED, OUTCOME_COMPLETED, OUTCOME_LOST
from crewd_client.v1.run_pb2 import RUN_STATUS_CANCELLED, RUN_STATUS_COMPLETED
from crewd_client.v1.spec_pb2 import RunLimits
from tests.support.daemon import Daemon, alive, eventually
from tests.support.desk import Desk, plain, retries, script, shell, worker


async def test_cancelled_comes_when_the_whole_tree_is_gone(daemon: Daemon, desk: Desk) -> None:
    run_id = await desk.submit(script("a", "escape"))
    await eventually(lambda: len(desk.booked("a")) == 2, "both have begun")
    pids = [int(line[0]) for line in desk.booked("a")]
    await desk.cancel(run_id)
    await desk.happened(run_id, "attempt_ended")
    assert not [pid for pid in pids if alive(pid)]
    assert daemon.marked() == []
    assert (await desk.ended(run_id)).status == RUN_STATUS_CANCELLED
    attempt = await desk.attempt(run_id, "a")
    assert (attempt.outcome, list(attempt.survivors)) == (OUTCOME_CANCELLED, [])


async def test_a_cancel_just_before_a_kill_is_carried_out(daemon: Daemon, desk: Desk) -> None:
    run_id = await desk.submit(script("a", "escape"), shell("b", "true", depends_on=["a"]))
    await eventually(lambda: len(desk.booked("a")) == 2, "both have begun")
    await desk.cancel(run_id)
    await daemon.restart()
    run = await desk.ended(run_id)
    assert (run.status, run.task_counts.cancelled) == (RUN_STATUS_CANCELLED, 2)
    assert daemon.marked() == []


async def test_stop_leaves_workers_running_and_the_next_daemon_takes_them_over(
    daemon: Daemon, desk: Desk
) -> None:
    run_id = await desk.submit(
        plain("a", "lines 30 0.02", f"wait {desk.root / 'gate'}"), worker("b", "ask q", "result ok")
    )
    await desk.asked(run_id)
    pid = (await desk.happened(run_id, "attempt_started", "a")).attempt_started.pid
    watching = asyncio.create_task(desk.ended(run_id))
    assert (await daemon.crew("stop", program="crewd"))[0] == 0
    assert await daemon.ended() == 0
    assert alive(pid)
    assert (await daemon.crew("status", program="crewd"))[0] == 3
    assert (await daemon.crew("ls"))[0] == 5
    await daemon.start()
    (ask,) = await desk.open_asks()
    await desk.answer(ask.id, "yes")
    (desk.root / "gate").touch()
    assert (await watching).status == RUN_STATUS_COMPLETED
    attempt = await desk.attempt(run_id, "a")
    assert (attempt.number, attempt.pid, attempt.outcome) == (1, pid, OUTCOME_COMPLETED)
    assert await desk.output(run_id, "a") == b"".join(b"line %d\n" % n for n in range(1, 31))


async def test_stop_all_ends_workers_and_the_run_goes_on_with_the_next_daemon(
    daemon: Daemon, desk: Desk
) -> None:
    gate = desk.root / "gate"
    run_id = await desk.submit(plain("a", f"wait {gate}"), retry=retries(2))
    await desk.happened(run_id, "attempt_started")
    code, out, _ = await daemon.crew("stop", "--all", program="crewd")
    assert (code, "1 workers stopped" in out) == (0, True)
    await daemon.ended()
    assert daemon.marked() == []
    assert not daemon.hosts.info.exists()
    gate.touch()
    await daemon.start()
    assert (await desk.ended(run_id)).status == RUN_STATUS_COMPLETED
    task = await desk.task(run_id, "a")
    assert [a.outcome for a in task.attempts] == [OUTCOME_LOST, OUTCOME_COMPLETED]


async def test_drain_starts_nothing_and_waits_for_what_runs(daemon: Daemon, desk: Desk) -> None:
    gate = desk.root / "gate"
    run_id = await desk.submit(
        plain("a", f"wait {gate}"), plain("b"), limits=RunLimits(max_concurrent_workers=1)
    )
    await desk.happened(run_id, "attempt_started", "a")
    draining = asyncio.create_task(daemon.crew("drain", program="crewd"))
    await eventually(lambda: is_draining(daemon), "it drains")
    gate.touch()
    code, out, _ = await draining
    assert (code, out) == (0, "drained\n")
    assert await daemon.ended() == 0
    assert desk.booked("b") == []
    await daemon.start()
    assert (await desk.ended(run_id)).status == RUN_STATUS_COMPLETED
    assert (await desk.attempt(run_id, "b")).number == 1


async def is_draining(daemon: Daemon) -> bool:
    return (await daemon.crew("status", program="crewd"))[0] == 4
