from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
from pathlib import Path

from tests.daemon.command import PATIENCE, Home, has_ended, wait_for_end


def test_ensure_starts_a_daemon_once_and_finds_it_then(home: Home) -> None:
    first = home.ensure()
    assert home.ensure() == first
    assert first["pid"] == home.pid()
    assert first == json.loads(home.paths.daemon_file.read_text())
    assert home.crewd("status").returncode == 0


def test_ten_at_once_from_shells_that_differ_get_one_daemon(home: Home) -> None:
    racers: list[subprocess.Popen[str]] = []
    for number in range(10):
        runtime = home.root / f"run{number % 3}"
        runtime.mkdir(mode=0o700, exist_ok=True)
        home.env.update(XDG_RUNTIME_DIR=str(runtime), TMPDIR=str(home.root))
        racers.append(home.start("ensure", "--json"))
    told = [racer.communicate(timeout=PATIENCE) for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * 10, told
    assert {json.loads(out)["pid"] for out, _ in told} == {home.pid()}


def test_a_second_daemon_is_refused_by_name(home: Home) -> None:
    daemon = home.ensure()
    done = home.crewd("serve")
    assert done.returncode == 6
    assert (
        f"pid {daemon['pid']}, version {daemon['version']}, socket {daemon['socket']}"
        in done.stderr
    )
    assert "Traceback" not in done.stderr
    assert home.crewd("status").returncode == 0


def test_after_a_kill_the_next_daemon_takes_over_what_lies_about(home: Home) -> None:
    before = home.ensure()
    os.kill(home.pid(), signal.SIGKILL)
    home.wait_until_free()
    assert home.paths.daemon_file.exists()
    assert Path(str(before["socket"])).exists()
    assert home.crewd("status").returncode == 3
    after = home.ensure()
    assert after["instance_id"] != before["instance_id"]
    assert (after["store_id"], after["socket"]) == (before["store_id"], before["socket"])
    assert home.crewd("status").returncode == 0


def test_two_state_directories_under_one_runtime_directory_do_not_meet(home: Home) -> None:
    one, two = home.ensure(), home.ensure("--state-dir", str(home.another("other")))
    assert one["socket"] != two["socket"]
    assert home.pid() != home.pid(home.root / "other")
    done = home.crewd(
        "status", CREWD_SOCKET=str(two["socket"]), CREWD_STATE_DIR=str(home.state_dir)
    )
    assert done.returncode == 6
    assert f"the daemon at {two['socket']} (CREWD_SOCKET) does not know this token" in done.stderr


def test_a_state_directory_may_have_any_name(home: Home) -> None:
    named = str(home.another("crews of 100%41 (ö)"))
    daemon = home.ensure("--state-dir", named)
    assert Path(str(daemon["socket"])).is_socket()
    assert home.crewd("status", "--state-dir", named).returncode == 0


def test_what_the_daemon_makes_is_for_its_owner_alone(home: Home) -> None:
    daemon = home.ensure()
    socket = Path(str(daemon["socket"]))
    assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(home.state_dir.stat().st_mode) == 0o700
    files = [path for path in home.state_dir.rglob("*") if path.is_file()]
    assert [path for path in files if stat.S_IMODE(path.stat().st_mode) & 0o077] == []


def test_a_daemon_in_the_background_holds_on_to_nothing_of_who_started_it(home: Home) -> None:
    pid = home.ensure()["pid"]
    process = Path(f"/proc/{pid}")
    assert os.getsid(int(str(pid))) == pid
    assert (process / "cwd").readlink() == Path("/")
    assert (process / "fd" / "0").readlink() == Path("/dev/null")
    assert (process / "fd" / "1").readlink() == home.paths.log
    assert (process / "fd" / "2").readlink() == home.paths.log


def test_a_signal_ends_the_daemon_and_nothing_of_it_can_be_found(home: Home) -> None:
    daemon = home.ensure()
    os.kill(home.pid(), signal.SIGTERM)
    wait_for_end(int(str(daemon["pid"])))
    assert not home.paths.daemon_file.exists()
    assert not Path(str(daemon["socket"])).exists()
    assert '"exit_code": 0' in home.paths.log.read_text()


def test_stop_returns_when_the_daemon_is_gone(home: Home) -> None:
    daemon = home.ensure()
    done = home.crewd("stop")
    assert (done.returncode, done.stdout) == (0, "stopped\n")
    assert has_ended(daemon["pid"])


def test_stop_all_ends_the_host_too(home: Home) -> None:
    home.ensure()
    assert home.crewd("stop", "--all").returncode == 0
    assert not (home.state_dir / "host" / "host.json").exists()


def test_drain_ends_a_daemon_that_has_nothing_to_do(home: Home) -> None:
    daemon = home.ensure()
    assert home.crewd("drain", "--timeout", "20s").returncode == 0
    assert has_ended(daemon["pid"])


def test_stop_ends_a_daemon_that_does_not_answer(home: Home) -> None:
    home.ensure()
    Path(str(home.ensure()["socket"])).unlink()
    assert home.crewd("status").returncode == 4
    assert home.crewd("stop").returncode == 0
    assert home.crewd("status").returncode == 3


def test_why_a_start_failed_is_told_from_the_log(home: Home) -> None:
    home.paths.make()
    home.paths.database.write_text("this is not a database, it only has its name\n" * 100)
    done = home.crewd("ensure")
    assert done.returncode == 5
    assert "could not be started: `crewd serve` ended with code 1" in done.stderr
    assert "file is not a database" in done.stderr
    assert f"hint: its log: {home.paths.log}" in done.stderr
