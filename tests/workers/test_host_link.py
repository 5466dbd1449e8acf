"""The link, against real host processes."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import timedelta
from pathlib import Path

import pytest

from crewd.host.protocol import SEGMENT_BYTES, STDIN_BYTES
from crewd.workers.host_link import (
    Exit,
    HostDown,
    HostGoneError,
    HostRefusedError,
    HostStatus,
    LostSeen,
    Output,
    Patience,
    Started,
    StartRefused,
    StdinRoom,
    WriteRefused,
    Written,
)
from tests.host.driver import Controller, HostUnderTest, alive
from tests.workers.link_user import Daemon

JOB = "run/task/1"
IMPATIENT = Patience(answer=timedelta(seconds=0.5), ping=timedelta(seconds=0.1))


async def test_a_link_starts_a_host_where_none_answers(state_dir: Path) -> None:
    daemon = Daemon(state_dir)
    assert daemon.status() is HostStatus.STARTING

    snapshot = await daemon.up()

    assert daemon.status() is HostStatus.CONNECTED
    assert alive(snapshot.pid)
    assert os.getsid(snapshot.pid) == snapshot.pid
    assert (snapshot.protocol, snapshot.jobs, snapshot.exits) == (1, {}, {})
    await daemon.leave()


async def test_a_link_that_may_not_start_one_waits_for_a_host(state_dir: Path) -> None:
    daemon = Daemon(state_dir, spawn=False, patience=IMPATIENT)
    await daemon.becomes(HostStatus.UNREACHABLE)
    assert "no host answers" in daemon.link.status_message

    starter = Daemon(state_dir)
    await starter.up()
    await starter.leave()

    await daemon.up()
    await daemon.leave()


async def test_a_job_is_started_read_and_forgotten(daemon: Daemon) -> None:
    daemon.shell(JOB, "echo hello; echo oops >&2; exit 3")

    started = await daemon.wait(Started)
    seen = await daemon.exit_of(JOB)

    assert started.job == JOB
    assert (seen.exit_code, seen.signal, seen.stdout, seen.stderr) == (3, None, 6, 5)
    assert daemon.link.spool(JOB, "stdout").read(0, 1 << 20) == b"hello\n"
    assert daemon.link.spool(JOB, "stderr").read(2, 2) == b"ps"
    daemon.link.forget([JOB])
    assert (await daemon.link.list()).exits == {}
    assert daemon.link.spool(JOB, "stdout").read(0, 1 << 20) == b""


async def test_news_of_a_job_come_in_order(daemon: Daemon) -> None:
    daemon.shell(JOB, "echo hello; read line; echo $line", stdin=True)
    daemon.link.write(JOB, 1, "answer\n")

    await daemon.wait(Exit)

    kinds = [type(news) for news in daemon.news]
    assert kinds.index(Started) < kinds.index(Written)
    assert daemon.news[kinds.index(Written)] == Written(JOB, 1)
    assert Started in kinds


async def test_a_refused_start_says_why(daemon: Daemon) -> None:
    daemon.start(JOB, "/no/such/program")

    refused = await daemon.wait(StartRefused)

    assert refused == StartRefused(JOB, "executable_missing", "/no/such/program: no such file")


async def test_names_that_are_no_utf8_reach_the_worker(daemon: Daemon) -> None:
    daemon.start(JOB, "/usr/bin/env", env={"A": os.fsdecode(b"\xff")})
    await daemon.exit_of(JOB)
    assert b"A=\xff\n" in daemon.link.spool(JOB, "stdout").read(0, 1000)

    daemon.start("run/task/2", os.fsdecode(b"/no/\xff"))
    assert (await daemon.wait(StartRefused)).message == "/no/?: no such file"


async def test_a_full_stdin_has_room_again(daemon: Daemon) -> None:
    daemon.shell(JOB, "sleep 0.2; exec cat >/dev/null", stdin=True)
    message = "x" * (STDIN_BYTES // 2)
    for seq in range(1, 5):
        daemon.link.write(JOB, seq, message)

    assert await daemon.wait(WriteRefused) == WriteRefused(JOB, "full")
    assert await daemon.wait(StdinRoom) == StdinRoom(JOB)
    last = max(news.stdin_seq for news in daemon.news if isinstance(news, Written))
    daemon.link.write(JOB, last + 1, message)
    await daemon.wait(Written, lambda news: news.stdin_seq == last + 1)
    daemon.link.close_stdin(JOB)
    assert (await daemon.exit_of(JOB)).exit_code == 0


async def test_a_stop_ends_in_an_exit(daemon: Daemon) -> None:
    daemon.shell(JOB, "trap '' TERM; echo ready; while :; do sleep 0.01; done")
    await daemon.wait(Output)

    daemon.link.stop(JOB, timedelta(milliseconds=50))

    seen = await daemon.exit_of(JOB)
    assert (seen.stopped, seen.signal, seen.survivors) == (True, signal.SIGKILL, ())


async def test_a_spool_is_read_across_segments_and_dropped_when_consumed(daemon: Daemon) -> None:
    size = 2 * SEGMENT_BYTES + 5
    daemon.shell(JOB, f"head -c {size} /dev/zero")
    await daemon.exit_of(JOB)
    spool = daemon.link.spool(JOB, "stdout")

    assert len(spool.read(SEGMENT_BYTES - 10, 20)) == 20
    assert len(spool.read(0, 1 << 30)) == size

    daemon.link.consumed(JOB, stdout=5, stderr=0)
    daemon.link.consumed(JOB, stdout=size, stderr=0)
    await daemon.link.list()
    assert spool.read(0, 10) == b""
    assert spool.read(size - 2, 10) == b"\0\0"


async def test_another_daemon_finds_what_the_first_one_left(state_dir: Path) -> None:
    first = Daemon(state_dir)
    pid = (await first.up()).pid
    first.shell("run/live/1", "echo out; sleep 600")
    first.shell("run/ended/1", "exit 4")
    await first.wait(Output)
    await first.exit_of("run/ended/1")
    await first.leave()

    second = Daemon(state_dir)
    snapshot = await second.up()

    assert snapshot.pid == pid
    assert snapshot.jobs["run/live/1"].stdout == 4
    assert snapshot.exits["run/ended/1"].exit_code == 4
    await second.leave()


async def test_a_host_that_dies_is_replaced_at_once(daemon: Daemon) -> None:
    daemon.shell(JOB, "echo out; sleep 600")
    await daemon.wait(Output)
    worker = (await daemon.wait(Started)).pid
    epoch = (await daemon.link.list()).epoch
    old = daemon.host_pid

    os.kill(old, signal.SIGKILL)

    await daemon.wait(HostDown)
    snapshot = await daemon.up()
    assert snapshot.pid != old
    assert snapshot.lost == {JOB: LostSeen(JOB, epoch, 4, 0)}
    assert not alive(worker)


async def test_a_halted_host_is_noticed_and_welcomed_back(state_dir: Path) -> None:
    daemon = Daemon(state_dir, patience=IMPATIENT)
    pid = (await daemon.up()).pid
    daemon.shell(JOB, "echo out; sleep 600")
    await daemon.wait(Output)
    os.kill(pid, signal.SIGSTOP)

    down = await daemon.wait(HostDown)

    assert daemon.status() is HostStatus.UNREACHABLE
    assert f"kill -9 {pid}" in daemon.link.status_message == down.reason
    with pytest.raises(HostGoneError):
        await daemon.link.list()
    os.kill(pid, signal.SIGCONT)
    snapshot = await daemon.up()
    assert (snapshot.pid, set(snapshot.jobs)) == (pid, {JOB})
    assert daemon.status() is HostStatus.CONNECTED
    assert HostDown not in {type(news) for news in daemon.news}
    await daemon.leave()


async def test_a_halted_host_without_jobs_is_noticed_when_it_is_probed(state_dir: Path) -> None:
    daemon = Daemon(state_dir, patience=IMPATIENT)
    pid = (await daemon.up()).pid
    daemon.link.probe()
    await daemon.link.list()
    os.kill(pid, signal.SIGSTOP)

    daemon.link.probe()
    daemon.link.probe()

    assert f"kill -9 {pid}" in (await daemon.wait(HostDown)).reason
    daemon.link.probe()
    os.kill(pid, signal.SIGCONT)
    await daemon.up()
    await daemon.leave()


async def test_a_host_that_is_halted_before_hello_is_unreachable(state_dir: Path) -> None:
    first = Daemon(state_dir)
    pid = (await first.up()).pid
    await first.leave()
    os.kill(pid, signal.SIGSTOP)

    daemon = Daemon(state_dir, patience=IMPATIENT)
    await daemon.becomes(HostStatus.UNREACHABLE)

    os.kill(pid, signal.SIGCONT)
    assert (await daemon.up()).pid == pid
    await daemon.leave()


async def test_a_call_fails_when_the_host_dies_before_it_answers(daemon: Daemon) -> None:
    os.kill(daemon.host_pid, signal.SIGSTOP)
    call = asyncio.create_task(daemon.link.list())
    await asyncio.sleep(0)

    os.kill(daemon.host_pid, signal.SIGKILL)

    with pytest.raises(HostGoneError):
        await call
    await daemon.up()


async def test_a_shutdown_is_refused_while_jobs_are_live(daemon: Daemon) -> None:
    daemon.shell(JOB, "sleep 600")
    await daemon.wait(Started)

    with pytest.raises(HostRefusedError) as refused:
        await daemon.link.shutdown(stop_jobs=False)

    assert refused.value.kind == "busy"
    await daemon.link.shutdown(stop_jobs=True)
    assert (await daemon.exit_of(JOB)).stopped
    await daemon.up()


async def test_a_link_that_is_replaced_says_so(daemon: Daemon, state_dir: Path) -> None:
    other = Controller(HostUnderTest(state_dir).paths)
    other.hello()

    assert "another daemon" in (await daemon.wait(HostDown)).reason
    other.close()


async def test_commands_without_a_host_are_dropped(state_dir: Path) -> None:
    daemon = Daemon(state_dir, spawn=False)

    daemon.link.write(JOB, 1, "x")
    daemon.link.close_stdin(JOB)
    daemon.link.stop(JOB, timedelta(0))
    daemon.link.consumed(JOB, stdout=1, stderr=1)
    daemon.link.forget([JOB])
    daemon.link.probe()
    with pytest.raises(HostGoneError):
        await daemon.link.list()

    assert daemon.news == []
    await daemon.leave()
