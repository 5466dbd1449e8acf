"""A real daemon under somebody who listens at NOTIFY_SOCKET."""

from __future__ import annotations

import asyncio
import faulthandler
import os
import secrets
import selectors
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crewd.systemd.notify import take_manager
from crewd_client.v1.server_pb2 import SERVER_STATUS_SERVING
from tests.support.daemon import Daemon
from tests.support.desk import worker
from tests.support.places import a_daemon
from tests.systemd.listener import Listener, a_listener

BARE = Path(__file__).parents[1] / "daemon" / "bare_daemon.py"
MANY_PINGS = "2000000"


@pytest.fixture
async def told() -> AsyncIterator[tuple[Daemon, Listener]]:
    """A daemon that is not started yet, and who listens to it."""
    async with a_daemon() as daemon:
        with a_listener(daemon.root) as listener:
            daemon.env["NOTIFY_SOCKET"] = listener.address
            yield daemon, listener


class Clock(selectors.SelectSelector):
    """Goes on only when everybody waits for it, and then at once."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        self.now += 0 if ready else timeout or 0
        return ready


class LoopWithoutRest(asyncio.SelectorEventLoop):
    """Its time is that of such a clock, so what takes minutes takes none."""

    def __init__(self) -> None:
        self._clock = Clock()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


async def heard(listener: Listener, text: str) -> list[str]:
    return await asyncio.to_thread(listener.wait_for, text)


async def test_ready_is_said_when_the_daemon_serves_and_stopping_when_it_ends(
    told: tuple[Daemon, Listener],
) -> None:
    daemon, listener = told
    daemon.launch()
    said = await heard(listener, "READY=1")
    assert said[0] == "STATUS=recovering"
    assert (await (await daemon.desk()).server()).status == SERVER_STATUS_SERVING
    await heard(listener, "STATUS=no runs")
    daemon.send(signal.SIGTERM)
    await heard(listener, "STOPPING=1")
    assert await daemon.ended() == 0


async def test_the_status_follows_runs_and_questions(told: tuple[Daemon, Listener]) -> None:
    daemon, listener = told
    await daemon.start()
    await heard(listener, "STATUS=no runs")
    desk = await daemon.desk()
    begin, end = daemon.root / "begin", daemon.root / "end"
    run_id = await desk.submit(worker("t", f"wait {begin}", "ask q", f"wait {end}", "result done"))
    assert await heard(listener, "STATUS=1 run") == ["STATUS=1 run"]
    begin.touch()
    ask, waiting = await desk.asked(run_id), "STATUS=1 run, 1 waiting for you"
    assert await heard(listener, waiting) == [waiting]
    await desk.answer(ask.id, "yes")
    assert await heard(listener, "STATUS=1 run") == ["STATUS=1 run"]
    end.touch()
    await desk.ended(run_id)
    assert await heard(listener, "STATUS=no runs") == ["STATUS=no runs"]


async def test_no_child_inherits_what_was_said_to_the_daemon(told: tuple[Daemon, Listener]) -> None:
    daemon, _ = told
    daemon.env |= {"WATCHDOG_USEC": MANY_PINGS, "WATCHDOG_PID": ""}
    await daemon.start()
    for pid in (daemon.pid, await daemon.host()):
        names = {one.partition(b"=")[0] for one in environment(pid)}
        named = {b"NOTIFY_SOCKET", b"WATCHDOG_USEC", b"WATCHDOG_PID"} & names
        assert bool(named) == (pid == daemon.pid)


async def test_pings_stop_when_the_process_does_nothing(told: tuple[Daemon, Listener]) -> None:
    daemon, listener = told
    daemon.env["WATCHDOG_USEC"] = "200000"
    await daemon.start()
    await heard(listener, "WATCHDOG=1")
    with daemon.stopped():
        assert state(daemon.pid) == "T"
        await asyncio.to_thread(listener.drain)
        assert not await asyncio.to_thread(listener.hear, 0.5)
    await heard(listener, "WATCHDOG=1")


def test_two_pings_come_in_the_time_that_one_may_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faulthandler, "enable", lambda: None)  # That of this process is pytest's.
    with a_listener(tmp_path) as listener, asyncio.Runner(loop_factory=LoopWithoutRest) as runner:
        manager = take_manager({"NOTIFY_SOCKET": listener.address, "WATCHDOG_USEC": "30000000"})
        assert manager is not None

        async def live(seconds: float) -> None:
            with manager.watched():
                await asyncio.sleep(seconds)

        runner.run(live(89))
        listener.drain()
    assert listener.heard == ["WATCHDOG=1"] * 6


async def test_who_watches_another_process_gets_no_pings(told: tuple[Daemon, Listener]) -> None:
    daemon, listener = told
    daemon.env |= {"WATCHDOG_USEC": "2000", "WATCHDOG_PID": "1"}
    await daemon.start()
    assert "WATCHDOG=1" not in await heard(listener, "STATUS=no runs")


async def test_a_host_that_is_not_there_is_named_with_the_unit_that_is_to_run_it() -> None:
    async with a_daemon("--host", "connect") as daemon:
        with a_listener(daemon.root, f"@crewd-test-{secrets.token_hex(8)}") as listener:
            daemon.env["NOTIFY_SOCKET"] = listener.address
            await daemon.start()
            said = await asyncio.to_thread(
                listener.wait_until, lambda text: "no worker" in text, "no host"
            )
    assert said[-1].startswith("STATUS=no runs; no worker can be started: no host answers at")
    assert said[-1].endswith("systemctl --user start crewd-host")


async def test_a_manager_that_is_gone_harms_nobody() -> None:
    async with a_daemon() as daemon:
        daemon.env |= {"NOTIFY_SOCKET": str(daemon.root / "gone"), "WATCHDOG_USEC": "2000"}
        await daemon.start()
        desk = await daemon.desk()
        await desk.ended(await desk.submit(worker("t", "result done")))
        assert daemon.log.read_text().count("service_manager_not_told") == 1


def test_a_daemon_that_recovers_pings_and_is_not_ready(tmp_path: Path) -> None:
    with a_listener(tmp_path) as listener, bare(tmp_path, listener, "slow_recovery") as daemon:
        assert daemon.stdout is not None
        for line in daemon.stdout:
            if line.startswith("recover"):
                break
        listener.drain()
        listener.wait_for("WATCHDOG=1")
        daemon.terminate()
        listener.wait_for("STOPPING=1")
        daemon.communicate(timeout=60)
        listener.drain()
    assert "READY=1" not in listener.heard
    assert "STATUS=bare slow_recovery" in listener.heard


def test_who_hangs_shows_where_when_told_to_abort(tmp_path: Path) -> None:
    with a_listener(tmp_path) as listener, bare(tmp_path, listener, "") as daemon:
        listener.wait_for("READY=1")
        daemon.send_signal(signal.SIGABRT)
        _, err = daemon.communicate(timeout=60)
    assert "Fatal Python error: Aborted" in err
    assert "bare_daemon.py" in err


def test_nothing_listens_where_nobody_says_so() -> None:
    env = {"WATCHDOG_USEC": "1", "WATCHDOG_PID": "1", "A": "b"}
    assert take_manager(env) is None
    assert env == {"A": "b"}


def test_the_host_is_ready_when_it_answers(tmp_path: Path) -> None:
    with a_listener(tmp_path) as listener:
        env = {**os.environ, "NOTIFY_SOCKET": listener.address}
        command = [sys.executable, "-m", "crewd.cli", "host", "--state-dir", str(tmp_path / "s")]
        with subprocess.Popen(command, env=env) as host:
            listener.wait_for("READY=1")
            assert (tmp_path / "s/host/host.sock").is_socket()
            assert (tmp_path / "s/host/host.json").read_text().startswith(f'{{"pid":{host.pid},')
            host.terminate()
            assert host.wait(60) == 0


def bare(root: Path, listener: Listener, habit: str) -> subprocess.Popen[str]:
    env = {
        **os.environ,
        "NOTIFY_SOCKET": listener.address,
        "WATCHDOG_USEC": "20000",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    return subprocess.Popen(
        [sys.executable, str(BARE), str(root / "s"), habit],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def environment(pid: int) -> list[bytes]:
    return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
