"""What the scenarios play on: daemons, directories and files, for a runner in any language.

Reads one step a line, as JSON, and answers each with a line: see clients/conformance/README.md. It
ends, and leaves nothing behind, when its input is closed or it gets SIGTERM, in mid-step too.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from tests.conformance.actors import Own, Shared
from tests.conformance.files import Files, StageError, Step, text_of
from tests.conformance.script import Script

T = TypeVar("T")
Reply = dict[str, object]
_LINE_BYTES = 64 * 1024 * 1024


class Stage:
    def __init__(self) -> None:
        self._shared = Shared()
        self._files: Files | None = None
        self._own: Own | None = None
        self._script: Script | None = None

    async def do(self, step: Step) -> Reply:
        """Do one step; give what it is answered with."""
        verb = text_of(step, "stage")
        if verb == "begin":
            return await self.begin()
        if verb == "end":
            await self.end()
            return {}
        if self._files is None:
            raise StageError(f"{verb}: no scenario has begun")
        if verb in _FILES:
            done = _FILES[verb](self._files, step)
            if done is not None:
                await done
            return {}
        return await self._act(verb, step, self._files)

    async def begin(self) -> Reply:
        await self.end()
        self._files = Files.make()
        return {"vars": self._files.vars(), "env": self._files.env()}

    async def end(self) -> None:
        """End what the scenario started; an error tells what it left behind."""
        own, script, files = self._own, self._script, self._files
        self._own = self._script = self._files = None
        try:
            if script is not None:
                await script.end()
            if own is not None:
                await own.end()
        finally:
            if files is not None:
                await files.clear()

    async def close(self) -> None:
        try:
            await self.end()
        finally:
            await self._shared.end()

    async def _act(self, verb: str, step: Step, files: Files) -> Reply:
        match verb:
            case "start":
                return await self._start(step, files)
            case "script":
                self._script = self._script or Script(files)
                return {"vars": await self._script.serve(step)}
            case "requests":
                return {"vars": {"requests": _started(self._script).requests}}
            case "read":
                return {"vars": {"text": files.read(step)}}
            case "repeat":
                times = int(str(step["times"]))
                return {"vars": {"repeated": text_of(step, "text") * times}}
            case _ if verb in _DAEMON:
                return {"vars": await _DAEMON[verb](_started(self._own))}
            case _:
                raise StageError(f"there is no step {verb!r}")

    async def _start(self, step: Step, files: Files) -> Reply:
        if not step.get("own"):
            served = await self._shared.start()
            env = {**files.env(), "CREWD_STATE_DIR": str(served["state_dir"])}
            return {"vars": served, "env": env}
        if self._own is not None:
            raise StageError("the scenario has a daemon of its own already")
        self._own = Own(files, step)
        return {"vars": await self._own.start(), "env": self._own.client_env()}


_FILES: dict[str, Callable[[Files, Step], Awaitable[None] | None]] = {
    "write": Files.write,
    "mkdir": Files.mkdir,
    "link": Files.link,
    "remove": Files.remove,
    "wait_file": Files.wait_file,
}
_DAEMON: dict[str, Callable[[Own], Awaitable[dict[str, object]]]] = {
    "kill": Own.kill,
    "restart": Own.restart,
    "stop": Own.stop,
    "tapped": Own.tapped,
}
STEPS = frozenset({"start", "script", "requests", "read", "repeat", *_FILES, *_DAEMON})
"""What a scenario may say; `begin` and `end` the runner says."""


def _started(actor: T | None) -> T:
    if actor is None:
        raise StageError("the scenario has started none")
    return actor


async def _answer(stage: Stage, line: bytes) -> Reply:
    try:
        step: Step = json.loads(line)
        return await stage.do(step)
    except Exception as error:  # noqa: BLE001  # whatever goes wrong fails one scenario only
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}


async def _play(stage: Stage, lines: asyncio.Queue[bytes]) -> None:
    while True:
        reply = await _answer(stage, await lines.get())
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


async def _read(lines: asyncio.Queue[bytes]) -> None:
    """Read until the input is closed."""
    reader = asyncio.StreamReader(limit=_LINE_BYTES)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    while line := await reader.readline():
        lines.put_nowait(line)


async def main() -> None:
    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    stage = Stage()
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    tasks = [asyncio.create_task(each) for each in (over.wait(), _read(lines), _play(stage, lines))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError, BrokenPipeError):
                await task
        await stage.close()


if __name__ == "__main__":
    asyncio.run(main())
