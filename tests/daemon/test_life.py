from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from tests.daemon.command import PATIENCE

BARE = Path(__file__).with_name("bare_daemon.py")


@contextmanager
def bare(state_dir: Path, habit: str = "") -> Generator[subprocess.Popen[str]]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        [sys.executable, str(BARE), str(state_dir), habit],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as daemon:
        yield daemon
        daemon.kill()


def read_until(stream: IO[str] | None, text: str) -> None:
    assert stream is not None
    for line in stream:
        if text in line:
            return
    raise AssertionError(f"{text} was not said")


def ended(daemon: subprocess.Popen[str]) -> tuple[int, list[str], list[dict[str, object]]]:
    out, err = daemon.communicate(timeout=PATIENCE)
    return daemon.returncode, out.splitlines(), [json.loads(line) for line in err.splitlines()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_daemon_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with bare(tmp_path) as daemon:
        read_until(daemon.stderr, "daemon_serving")
        daemon.send_signal(number)
        code, out, log = ended(daemon)
    assert code == 0
    assert out == [
        "open",
        "serve",
        "recover +",
        f"stop: the daemon was told to stop ({number.name}) +",
        "close",
    ]
    assert [entry["event"] for entry in log] == ["daemon_stopping", "daemon_ended"]


def test_a_signal_ends_recovery_too(tmp_path: Path) -> None:
    with bare(tmp_path, "slow_recovery") as daemon:
        read_until(daemon.stdout, "recover")
        daemon.terminate()
        code, out, _ = ended(daemon)
    assert code == 0
    assert out[-1] == "close"


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with bare(tmp_path, "slow_stop") as daemon:
        read_until(daemon.stderr, "daemon_serving")
        daemon.send_signal(signal.SIGINT)
        read_until(daemon.stdout, "stop")
        daemon.send_signal(signal.SIGINT)
        code, out, _ = ended(daemon)
    assert code == 130
    assert out == []


@pytest.mark.parametrize(
    ("habit", "code", "event"),
    [
        ("side_fails", 70, "side_task_failed"),
        ("side_ends", 70, "side_task_ended"),
        ("recovery_fails", 70, "daemon_failed"),
        ("serve_fails", 70, "daemon_failed"),
        ("disk_fails", 1, "daemon_ended"),
    ],
)
def test_what_breaks_ends_the_daemon_with_a_code_and_a_line(
    tmp_path: Path, habit: str, code: int, event: str
) -> None:
    with bare(tmp_path, habit) as daemon:
        returned, _, log = ended(daemon)
    assert returned == code
    assert event in [entry["event"] for entry in log]
    assert not (tmp_path / "daemon.json").exists()


def test_an_incident_in_the_log_has_an_id_and_the_traceback(tmp_path: Path) -> None:
    with bare(tmp_path, "recovery_fails") as daemon:
        _, _, log = ended(daemon)
    assert str(log[-1]["incident_id"]).startswith("inc_")
    assert "RuntimeError: no rows" in str(log[-1]["exception"])
