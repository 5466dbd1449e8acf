"""A real host process, and a controller that speaks to it line by line."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from crewd.host.marks import Marks
from crewd.host.protocol import PROTOCOL, SEGMENT_BYTES, HostPaths, secret
from crewd.host.strays import kill_strays
from crewd.host.tree import read_process
from tests.support.waiting import wait_until

Message = dict[str, Any]

ROOT = Path(__file__).parents[2]
DEADLINE_SECONDS = 20.0
PATH = {"PATH": "/usr/bin:/bin"}


def eventually(fact: Callable[[], object], seconds: float = DEADLINE_SECONDS) -> None:
    """Wait until something is true, looking at it every few milliseconds."""
    wait_until(fact, seconds)


def alive(pid: int) -> bool:
    process = read_process(pid)
    return process is not None and not process.zombie


def number_in(path: Path) -> int:
    """Wait for a worker to write a whole line with a number."""
    eventually(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


class Controller:
    def __init__(self, paths: HostPaths) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(DEADLINE_SECONDS)
        self._socket.connect(os.fspath(paths.socket))
        self._received = b""
        self._next_id = 1
        self._key = secret(paths.key)
        self.news: list[Message] = []
        self.epoch = ""

    def hello(self, **fields: object) -> Message:
        answer = self.ask("hello", **{"protocol": PROTOCOL, "key": self._key, **fields})
        self.epoch = answer.get("epoch", "")
        return answer

    def send(self, verb: str, **fields: object) -> int:
        number = self._next_id
        self._next_id += 1
        self.send_raw(json.dumps({"id": number, "verb": verb, **fields}).encode() + b"\n")
        return number

    def send_raw(self, raw: bytes) -> None:
        self._socket.sendall(raw)

    def ask(self, verb: str, **fields: object) -> Message:
        """Return the reply; news that come before it are kept."""
        return self.reply_to(self.send(verb, **fields))

    def reply_to(self, number: int) -> Message:
        while True:
            message = self.receive()
            if "news" not in message:
                assert message["id"] == number
                return message
            self.news.append(message)

    def refusal(self, verb: str, **fields: object) -> str:
        answer = self.ask(verb, **fields)
        assert answer["ok"] is False
        return str(answer["error"]["kind"])

    def start(self, job: str, *argv: str, **fields: object) -> Message:
        return self.ask("start", **self.order(job, *argv, **fields))

    def order(self, job: str, *argv: str, **fields: object) -> Message:
        order = {"job": job, "epoch": self.epoch, "argv": argv, "cwd": "/", "env": PATH}
        return {**order, **fields}

    def shell(self, job: str, script: str, **fields: object) -> int:
        answer = self.start(job, "/bin/sh", "-c", script, **fields)
        assert answer["ok"], answer
        return int(answer["pid"])

    def wait(self, kind: str, **fields: object) -> Message:
        """Return the first news of this kind with these values, seen or yet to come."""
        seen = 0
        while True:
            for message in self.news[seen:]:
                if message["news"] == kind and fields.items() <= message.items():
                    return message
            seen = len(self.news)
            message = self.receive()
            assert "news" in message, message
            self.news.append(message)

    def wait_exit(self, job: str) -> Message:
        return self.wait("exit", job=job)

    def receive(self) -> Message:
        while b"\n" not in self._received:
            data = self._socket.recv(1 << 20)
            if not data:
                raise EOFError
            self._received += data
        raw, self._received = self._received.split(b"\n", 1)
        return cast("Message", json.loads(raw))

    def hangs_up(self) -> bool:
        """Tell whether the host has closed this connection, having said what it had to say."""
        try:
            while True:
                self.receive()
        except (EOFError, ConnectionError):
            return True

    def close(self) -> None:
        self._socket.close()


class HostUnderTest:
    def __init__(self, state_dir: Path) -> None:
        state_dir.mkdir(parents=True, exist_ok=True)
        self.paths = HostPaths(state_dir)
        self._state_dir = state_dir
        self._controllers: list[Controller] = []
        self.popen: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self.popen is not None
        return self.popen.pid

    def start(self, *options: str, prefix: Sequence[str] = ()) -> None:
        """Start a host and wait until it listens."""
        self.popen = self.launch(*options, prefix=prefix)
        eventually(lambda: self._info().get("pid") == self.pid)

    def launch(
        self, *options: str, env: Mapping[str, str] | None = None, prefix: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        host = [sys.executable, "-m", "crewd.host", "--state-dir", str(self._state_dir)]
        return subprocess.Popen(
            [*prefix, *host, *options],
            cwd=ROOT,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def controller(self) -> Controller:
        controller = self.stranger()
        controller.hello()
        return controller

    def stranger(self) -> Controller:
        """Return a connection that has not said hello."""
        controller = Controller(self.paths)
        self._controllers.append(controller)
        return controller

    def spooled(self, job: str, stream: str = "stdout") -> bytes:
        found: list[bytes] = []
        while (path := self.paths.segment(job, stream, len(found))).exists():
            found.append(path.read_bytes())
            assert len(found[-1]) <= SEGMENT_BYTES
        return b"".join(found)

    def wait(self) -> int:
        assert self.popen is not None
        code = self.popen.wait(DEADLINE_SECONDS)
        assert self.popen.stderr is not None
        self.popen.stderr.close()
        return code

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.wait()

    def end(self) -> None:
        """Stop everything at once, whatever the test did."""
        for controller in self._controllers:
            controller.close()
        if self.popen is not None and self.popen.returncode is None:
            self.kill()
        if self.paths.marker.exists():
            marker = self.paths.marker.read_text()
            assert kill_strays(Marks(marker), marker, ()) == []

    def end_any(self) -> None:
        """Kill whichever host serves this state directory, be it still starting, and its jobs."""
        eventually(self._is_free)
        self.end()

    def _is_free(self) -> bool:
        pid = self._info().get("pid")
        if pid is not None and str(self._state_dir).encode() in _command_line(pid):
            os.kill(pid, signal.SIGKILL)
            self.paths.info.unlink(missing_ok=True)
        if not self.paths.lock.exists():
            return True
        with self.paths.lock.open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    def _info(self) -> Message:
        try:
            return cast("Message", json.loads(self.paths.info.read_bytes()))
        except FileNotFoundError:
            return {}
