"""The `crew` command as a person or a script meets it: a process."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import sys
from asyncio.subprocess import PIPE, Process
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.clients.support.fake_daemon import FakeDaemon

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-c", "from crewd_client.cli import main; main()"]
PATIENCE = 60
Env = dict[str, str] | None


@dataclass(frozen=True)
class Ended:
    """What a finished command left."""

    code: int
    out: str
    err: str


def environment(state_dir: Path) -> dict[str, str]:
    return {
        "CREWD_STATE_DIR": str(state_dir),
        "HOME": str(state_dir),
        "LANG": "C.UTF-8",
        "PATH": f"relative:{os.defpath}",
        "PYTHONPATH": str(ROOT / "clients" / "python" / "src"),
        "TERM": "xterm",
    }


async def start(
    daemon: FakeDaemon, *arguments: str, cwd: Path | None = None, env: Env = None
) -> Process:
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        cwd=cwd or daemon.state_dir,
        env=environment(daemon.state_dir) | (env or {}),
    )
    daemon.commands.append(process)
    return process


async def crew(
    daemon: FakeDaemon,
    *arguments: str,
    cwd: Path | None = None,
    stdin: str = "",
    env: Env = None,
) -> Ended:
    """Run a command to its end."""
    return await ended(await start(daemon, *arguments, cwd=cwd, env=env), stdin)


async def ended(process: Process, stdin: str = "") -> Ended:
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate(stdin.encode())
    return Ended(process.returncode or 0, out.decode(), err.decode())


async def line_with(process: Process, text: str) -> str:
    """Wait until the command says something on stderr."""
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE):
        while line := (await process.stderr.readline()).decode():
            if text in line:
                return line
    raise AssertionError(f"it ended without saying {text!r}")


@dataclass
class AtTerminal:
    """A command at a terminal of its own."""

    process: Process
    master: int
    shown: str = ""
    _more: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    async def start(cls, daemon: FakeDaemon, *arguments: str) -> Self:
        master, slave = pty.openpty()
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            *arguments,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=daemon.state_dir,
            env=environment(daemon.state_dir),
            start_new_session=True,
        )
        os.close(slave)
        daemon.commands.append(process)
        self = cls(process, master)
        asyncio.get_running_loop().add_reader(master, self._read)
        return self

    async def sees(self, text: str) -> None:
        """Wait until the text is shown, and forget what was shown up to it."""
        async with asyncio.timeout(PATIENCE):
            while text not in self.shown:
                self._more.clear()
                await self._more.wait()
        self.shown = self.shown.partition(text)[2]

    def types(self, text: str) -> None:
        os.write(self.master, text.encode())

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    async def ends(self) -> int:
        async with asyncio.timeout(PATIENCE):
            code = await self.process.wait()
        asyncio.get_running_loop().remove_reader(self.master)
        os.close(self.master)
        return code

    def _read(self) -> None:
        try:
            self.shown += os.read(self.master, 65536).decode(errors="replace")
        except OSError:
            # The other side is gone.
            asyncio.get_running_loop().remove_reader(self.master)
        self._more.set()
