"""A real daemon with its host in a state directory of its own: killed, restarted, and cleared away.

Everything is ended by pid, and `end` asserts that nothing that bears the marks of the state
directory is left, and that the logs hold nothing that was not expected.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from inspect import isawaitable
from pathlib import Path
from typing import Any

from crewd.host.marks import Marks
from crewd.host.protocol import ATTEMPT_VARIABLE, HostPaths
from crewd.host.tree import all_processes, job_in_environment, kill_all, read_process
from crewd_client import Client
from tests.support.desk import Desk

PATIENCE = 90.0
CREWD = (sys.executable, "-m", "crewd.cli")
BAD_WORDS = ("Traceback", "run_broken", '"level": "error"')
_PAUSE_SECONDS = 0.01


async def eventually(
    fact: Callable[[], object | Awaitable[object]], what: str = "", seconds: float = PATIENCE
) -> None:
    """Wait until something is true, looking at it every few milliseconds."""
    give_up_at = time.monotonic() + seconds
    while True:
        found = fact()
        if isawaitable(found):
            found = await found
        if found:
            return
        assert time.monotonic() < give_up_at, f"not true after {seconds} s: {what or fact}"
        await asyncio.sleep(_PAUSE_SECONDS)


def alive(pid: int) -> bool:
    process = read_process(pid)
    return process is not None and not process.zombie


class Daemon:
    """`quiet`: its log is looked at in the end. Set it to False where errors are expected."""

    def __init__(self, root: Path, *, name: str = "s", options: tuple[str, ...] = ()) -> None:
        self.root = root
        self.state_dir = root / name
        self.log = root / f"{name}.log"
        self.options = options
        self.quiet = True
        (root / "run").mkdir(mode=0o700, exist_ok=True)
        (root / "book").mkdir(exist_ok=True)
        given = {n: v for n, v in os.environ.items() if not n.startswith(("CREWD_", "XDG_"))}
        self.env = {
            **given,
            "HOME": str(root),
            "XDG_RUNTIME_DIR": str(root / "run"),
            "CREWD_STATE_DIR": str(self.state_dir),
        }
        # As for who has installed it: modules are compiled once, not at each start.
        self.env.pop("PYTHONDONTWRITEBYTECODE", None)
        self.hosts = HostPaths(self.state_dir)
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0
        self._clients: list[Client] = []

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def launch(self) -> None:
        """Start the process and do not wait for anything."""
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*CREWD, "serve", *self.options],
                cwd="/",
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def start(self) -> None:
        """Start the process and wait until it serves."""
        self.launch()
        await self.serves()

    async def serves(self) -> None:
        def fact() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, self._said()
            return "daemon_serving" in self._said()

        await eventually(fact, "the daemon serves")

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self._wait()

    async def restart(self) -> None:
        self.kill()
        await self.start()

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    @contextmanager
    def stopped(self) -> Generator[None]:
        """Have the process do nothing for a while: every thread of it has stopped by then."""
        self.send(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)
        try:
            yield
        finally:
            self.send(signal.SIGCONT)

    async def ended(self) -> int:
        """Wait until the process has ended by itself; return its exit code."""
        process = self._process
        assert process is not None
        await eventually(lambda: process.poll() is not None, "the daemon ends")
        return process.returncode

    def host_pid(self) -> int:
        """Return the pid of the host that wrote host.json, 0 if there is none."""
        try:
            info: dict[str, Any] = json.loads(self.hosts.info.read_bytes())
        except (FileNotFoundError, ValueError):
            return 0
        return int(info["pid"])

    async def host(self) -> int:
        """Wait for a host that lives, and return its pid."""
        await eventually(lambda: self.host_pid() and alive(self.host_pid()), "a host lives")
        return self.host_pid()

    def signal_host(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.host_pid() or -1, number) if self.host_pid() else None

    async def desk(self) -> Desk:
        """Connect a client."""
        client = await Client.connect(state_dir=self.state_dir, env=self.env)
        self._clients.append(client)
        return Desk(client, self.root)

    async def crew(self, *arguments: str, program: str = "crew") -> tuple[int, str, str]:
        """Run a command as a person types it; return its exit code, stdout and stderr."""
        process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).parent / program),
            *arguments,
            cwd=self.root,
            env=self.env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate()
        assert process.returncode is not None
        return process.returncode, out.decode(), err.decode()

    def marked(self) -> list[int]:
        """Return the pids of all living processes with this state directory's marks."""
        try:
            marker = self.hosts.marker.read_text()
        except FileNotFoundError:
            return []
        marks, variable = Marks(marker), f"{ATTEMPT_VARIABLE}={marker}/".encode()
        return [
            pid
            for pid, process in all_processes().items()
            if not process.zombie and (marks.read(pid) or job_in_environment(pid, variable))
        ]

    async def end(self) -> None:
        """End the daemon, the host and all workers; assert that nothing is left of them."""
        for client in self._clients:
            await client.close()
        hosts = {self.host_pid()}
        if self._process is not None and self._process.returncode is None:
            # One that is only just starting has not said its pid.
            hosts |= {p.pid for p in all_processes().values() if p.parent == self.pid}
            self.kill()
        hosts = {pid for pid in hosts if pid and alive(pid)}
        for pid in hosts:
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, signal.SIGTERM)
        try:
            await eventually(lambda: not any(map(alive, hosts)), "the host ends")
            assert self.marked() == []
        finally:
            kill_all(p for pid in [*self.marked(), *hosts] if (p := read_process(pid)))
        if self.quiet:
            self.assert_quiet()

    def assert_quiet(self) -> None:
        """Assert that neither log tells of anything that went wrong."""
        logs = [self.log, self.hosts.log]
        lines = [line for log in logs if log.exists() for line in log.read_text().splitlines()]
        assert [line for line in lines if any(word in line for word in BAD_WORDS)] == []

    def _said(self) -> str:
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def _wait(self) -> None:
        assert self._process is not None
        descriptor = os.pidfd_open(self._process.pid)
        try:
            assert select.select([descriptor], [], [], PATIENCE)[0]
        finally:
            os.close(descriptor)
        self._process.wait()
