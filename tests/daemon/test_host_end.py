from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crewd.cli.host import HostEnd, stop_host
from crewd.host.protocol import HostPaths, secret
from crewd.refusal import Exit, Refusal
from tests.daemon.command import PATIENCE, has_ended


@pytest.fixture
def host(tmp_path: Path) -> Iterator[HostPaths]:
    """Run a real host for this state directory."""
    paths = HostPaths(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-m", "crewd.host", "--state-dir", str(tmp_path)],
        cwd=Path(__file__).parents[2],
    ) as process:
        deadline = time.monotonic() + PATIENCE
        while not paths.info.exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.005)
        yield paths
        process.kill()


def start(paths: HostPaths, *argv: str) -> int:
    """Start a job as a daemon would that goes away then; return its pid."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(os.fspath(paths.socket))
        lines = connection.makefile("rwb", buffering=0)
        hello = {"id": 1, "verb": "hello", "key": secret(paths.key)}
        lines.write(json.dumps(hello).encode() + b"\n")
        order = {"job": "run/task/1", "epoch": json.loads(lines.readline())["epoch"]}
        order |= {"id": 2, "verb": "start", "argv": argv, "cwd": "/", "env": {}}
        lines.write(json.dumps(order).encode() + b"\n")
        pid: int = json.loads(lines.readline())["pid"]
    return pid


def test_the_host_and_its_workers_are_proven_gone(host: HostPaths, tmp_path: Path) -> None:
    worker = start(host, "/bin/sleep", "1000")
    told = json.loads(host.info.read_text())
    assert stop_host(tmp_path) == HostEnd(jobs=1, survivors=())
    assert has_ended(worker)
    assert has_ended(told["pid"], patience=PATIENCE)


def test_where_no_host_runs_there_is_nothing_to_stop(tmp_path: Path) -> None:
    assert stop_host(tmp_path) is None


def test_a_host_that_hangs_is_named_with_the_way_out(
    host: HostPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crewd.cli.host._ANSWER_SECONDS", 0.2)
    pid = json.loads(host.info.read_text())["pid"]
    os.kill(pid, signal.SIGSTOP)

    with pytest.raises(Refusal, match=rf"\(pid {pid}\) does not answer") as refused:
        stop_host(tmp_path)

    assert f"kill -9 {pid}" in refused.value.hint
    assert refused.value.exit_code == Exit.FAILED
