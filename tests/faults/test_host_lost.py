"""The host is killed, hangs, or is a second one."""

from __future__ import annotations

import asyncio
import signal
import sys

from crewd_client.v1.attempt_pb2 import OUTCOME_CANCELLED, OUTCOME_COMPLETED, OUTCOME_LOST
from crewd_client.v1.run_pb2 import (
    RUN_STATUS_CANCELLED,
    RUN_STATUS_CANCELLING,
    RUN_STATUS_COMPLETED,
)
from crewd_client.v1.server_pb2 import (
    HOST_STATUS_READY,
    HOST_STATUS_UNREACHABLE,
    SERVER_STATUS_SERVING,
)
from crewd_client.v1.task_pb2 import TASK_STATUS_QUEUED
from tests.support.daemon import Daemon, alive, eventually
from tests.support.desk import Desk, plain, retries, script, shell, worker


async def escaped(desk: Desk, task_id: str, times: int = 1) -> list[int]:
    """Wait until both processes of so many attempts have begun; return their pids."""
    await eventually(lambda: len(desk.booked(task_id)) == 2 * times, f"{task_id} has begun")
    return [int(line[0]) for line in desk.booked(task_id)]


async def test_what_a_lost_host_left_is_gone_before_a_retry_starts(
    daemon: Daemon, desk: Desk
) -> None:
    run_id = await desk.submit(
        script("escapes", "escape"),
        worker("asks", "ask q", "result ok"),
        retry=retries(2),
    )
    before = await escaped(desk, "escapes")
    ask = await desk.asked(run_id)
    daemon.signal_host(signal.SIGKILL)
    for task_id in ("escapes", "asks"):
        end = await desk.happened(run_id, "attempt_ended", task_id)
        assert end.attempt_ended.outcome == OUTCOME_LOST
    await desk.happened(run_id, "ask_attached", "asks")
    await escaped(desk, "escapes", times=2)
    assert not [pid for pid in before if alive(pid)]
    assert desk.never_twice()
    await desk.answer(ask.id, "yes")
    end = await desk.happened(run_id, "attempt_ended", "asks", times=2)
    assert (end.attempt, end.attempt_ended.outcome) == (2, OUTCOME_COMPLETED)
    assert len(await desk.asks(run_id)) == 1
    await desk.cancel(run_id, force=True)
    assert (await desk.ended(run_id)).status == RUN_STATUS_CANCELLED
    assert daemon.marked() == []


async def test_the_last_loss_fails_the_task(daemon: Daemon, desk: Desk) -> None:
    run_id = await desk.submit(plain("a", "wait /nowhere"), retry=retries(1))
    await desk.happened(run_id, "attempt_started")
    daemon.signal_host(signal.SIGKILL)
    run = await desk.ended(run_id)
    assert run.error.reason == "lost"
    assert "lost" in run.status_message
    assert daemon.marked() == []


async def test_a_host_that_hangs_leaves_the_daemon_serving(daemon: Daemon, desk: Desk) -> None:
    run_id = await desk.submit(worker("a", "ask q"), plain("b", "wait /nowhere"))
    ask = await desk.asked(run_id)
    await desk.happened(run_id, "attempt_started", "b")
    daemon.signal_host(signal.SIGSTOP)
    assert (await desk.cancel(run_id)).status == RUN_STATUS_CANCELLING
    await eventually(lambda: host_is(desk, HOST_STATUS_UNREACHABLE), "it is said")
    assert (await desk.server()).status == SERVER_STATUS_SERVING
    assert (await desk.run(run_id)).status == RUN_STATUS_CANCELLING
    assert [a.id for a in await desk.asks(run_id)] == [ask.id]
    later = await desk.submit(shell("c", "echo late"))
    assert (await desk.task(later, "c")).status == TASK_STATUS_QUEUED
    code, out, _ = await daemon.crew("status", program="crewd")
    assert (code, "UNREACHABLE" in out) == (0, True)
    daemon.signal_host(signal.SIGCONT)
    assert (await desk.ended(run_id)).status == RUN_STATUS_CANCELLED
    assert (await desk.attempt(run_id, "b")).outcome == OUTCOME_CANCELLED
    assert (await desk.ended(later)).status == RUN_STATUS_COMPLETED
    assert await host_is(desk, HOST_STATUS_READY)


async def host_is(desk: Desk, status: int) -> bool:
    return (await desk.server()).host.status == status


async def test_a_forced_cancel_ends_beside_a_hung_host_and_names_what_is_left(
    daemon: Daemon, desk: Desk
) -> None:
    run_id = await desk.submit(plain("a", "deaf", "wait /nowhere"))
    pid = (await desk.happened(run_id, "attempt_started")).attempt_started.pid
    await eventually(lambda: desk.booked("a"), "it runs")
    daemon.signal_host(signal.SIGSTOP)
    await desk.cancel(run_id, force=True)
    run = await desk.ended(run_id)
    assert run.status == RUN_STATUS_CANCELLED
    finish = next(e for e in await desk.events(run_id) if e.kind == "run_finished")
    assert [s.pid for s in finish.run_finished.survivors] == [pid]
    assert alive(pid)
    attempt = await desk.attempt(run_id, "a")
    assert (attempt.outcome, [s.pid for s in attempt.survivors]) == (OUTCOME_CANCELLED, [pid])
    daemon.signal_host(signal.SIGCONT)
    await eventually(lambda: daemon.marked() == [], "the survivor is ended after all")


async def test_a_second_host_is_refused_by_name(daemon: Daemon) -> None:
    first = await daemon.host()
    second = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "crewd.host", "--state-dir", str(daemon.state_dir)),
        env=daemon.env,
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await second.communicate()
    assert second.returncode == 3
    assert f"pid {first}, version " in err.decode()
    assert str(daemon.hosts.socket) in err.decode()
    assert alive(first)
