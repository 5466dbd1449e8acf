"""A process that is handed on from job to job, as the link tells it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from datetime import timedelta
from pathlib import Path

from crewd.host.protocol import PROTOCOL, HostPaths
from crewd.workers.host_link import (
    Exit,
    HostDown,
    HostUp,
    Patience,
    Started,
    StartRefused,
    Written,
)
from crewd.workers.host_passes import Passes
from tests.host.driver import alive
from tests.workers.link_user import Daemon

OLD, NEW = "run/old/1", "run/new/1"
IMPATIENT = Patience(answer=timedelta(seconds=0.5), ping=timedelta(seconds=0.1))


async def begin(daemon: Daemon) -> int:
    """Start the process that is to be handed on; return its pid."""
    daemon.start(OLD, "/bin/cat", stdin=True)
    return (await daemon.wait(Started)).pid


def pass_on(daemon: Daemon) -> None:
    assert daemon.link.snapshot is not None
    daemon.link.pass_on(OLD, NEW, daemon.link.snapshot.epoch)


async def older_host(state_dir: Path) -> asyncio.Server:
    """Listen as a host that knows hello and nothing else."""
    paths = HostPaths(state_dir)
    paths.make_private()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for raw in reader:
            asked = json.loads(raw)
            answer = {"id": asked["id"], "ok": asked["verb"] == "hello", "protocol": PROTOCOL}
            error = {"kind": "unknown_verb", "message": f"this host has no verb {asked['verb']}"}
            writer.write(json.dumps({**answer, "error": error}).encode() + b"\n")
        writer.close()

    return await asyncio.start_unix_server(serve, paths.socket)


async def test_the_first_job_ends_before_the_second_one_starts(daemon: Daemon) -> None:
    pid = await begin(daemon)
    daemon.news.clear()

    pass_on(daemon)
    daemon.link.write(NEW, 1, "two\n")

    await daemon.wait(Written, lambda news: news == Written(NEW, 1))
    ended, started = daemon.news[:2]
    assert isinstance(ended, Exit)
    assert (ended.exit.job, ended.exit.passed_to, ended.exit.exit_code) == (OLD, NEW, 0)
    assert started == Started(NEW, pid)
    daemon.link.close_stdin(NEW)
    assert (await daemon.exit_of(NEW)).passed_to == ""
    assert daemon.link.spool(NEW, "stdout").read(0, 100) == b"two\n"


async def test_the_same_pass_again_is_answered_like_the_first(daemon: Daemon) -> None:
    pid = await begin(daemon)

    pass_on(daemon)
    pass_on(daemon)

    assert [(await daemon.wait(Started)).pid for _ in range(2)] == [pid, pid]
    assert (await daemon.link.list()).exits[OLD].passed_to == NEW


async def test_a_refused_pass_says_why(daemon: Daemon) -> None:
    await begin(daemon)
    daemon.link.pass_on(OLD, NEW, "another")
    assert "this is epoch" in (await daemon.wait(StartRefused)).message

    daemon.link.close_stdin(OLD)
    await daemon.exit_of(OLD)
    pass_on(daemon)

    refused = await daemon.wait(StartRefused)
    assert refused == StartRefused(NEW, "not_passed", f"{OLD} has ended")


async def test_an_older_host_passes_nothing(state_dir: Path) -> None:
    server = await older_host(state_dir)
    daemon = Daemon(state_dir, spawn=False)
    await daemon.up()

    pass_on(daemon)

    refused = await daemon.wait(StartRefused)
    assert refused == StartRefused(NEW, "not_passed", "this host has no verb pass")
    await daemon.leave()
    server.close()
    await server.wait_closed()


async def test_a_pass_that_the_host_did_not_live_to_see_is_refused(daemon: Daemon) -> None:
    worker, host = await begin(daemon), daemon.host_pid
    os.kill(host, signal.SIGSTOP)
    pass_on(daemon)
    await asyncio.sleep(0)

    os.kill(host, signal.SIGKILL)

    refused = await daemon.wait(StartRefused)
    assert (refused.job, refused.kind) == (NEW, "not_passed")
    kinds = [type(news) for news in daemon.news]
    assert kinds.index(HostDown) < kinds.index(HostUp)
    assert set((await daemon.up()).lost) == {OLD}
    assert not alive(worker)


async def test_a_pass_that_was_done_meanwhile_is_in_the_snapshot(state_dir: Path) -> None:
    daemon = Daemon(state_dir, patience=IMPATIENT)
    host = (await daemon.up()).pid
    worker = await begin(daemon)
    os.kill(host, signal.SIGSTOP)
    pass_on(daemon)
    await daemon.wait(HostDown)

    os.kill(host, signal.SIGCONT)

    snapshot = await daemon.up()
    assert snapshot.jobs[NEW].pid == worker
    assert snapshot.exits[OLD].passed_to == NEW
    await daemon.link.list()
    assert StartRefused not in {type(news) for news in daemon.news}
    await daemon.leave()


async def test_a_pass_without_a_host_is_refused_when_there_is_one(state_dir: Path) -> None:
    daemon = Daemon(state_dir)
    daemon.link.pass_on(OLD, NEW, "unknown")

    await daemon.up()

    assert (await daemon.wait(StartRefused)).job == NEW
    await daemon.leave()


async def test_a_pass_that_is_asked_for_again_is_not_decided_yet(daemon: Daemon) -> None:
    passes = Passes()
    passes.ask(NEW)
    undecided = passes.take()
    passes.ask(NEW)

    assert undecided == [NEW]
    assert list(passes.not_in(await daemon.link.list(), undecided)) == []
    passes.answered(NEW)
    assert [news.job for news in passes.not_in(await daemon.link.list(), undecided)] == [NEW]
