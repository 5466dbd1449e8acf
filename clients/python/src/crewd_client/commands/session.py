"""What every command needs: the daemon, found or started."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import click

from crewd_client import locate
from crewd_client._version import __version__
from crewd_client.client import Client
from crewd_client.commands.exits import Exit, Refusal
from crewd_client.errors import NoDaemonError
from crewd_client.json import parse_duration

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Session:
    """Which daemon a command is for."""

    state_dir: str | None
    socket: str | None

    def perform(
        self, work: Callable[[Client], Coroutine[Any, Any, int]], *, start: bool = False
    ) -> int:
        """Do the work with a connected client; `start`: start the daemon if none runs."""
        gc.freeze()
        gc.enable()
        try:
            return asyncio.run(self._perform(work, start=start))
        except BrokenPipeError:
            # Who read has seen enough.
            return Exit.DONE

    async def _perform(
        self, work: Callable[[Client], Coroutine[Any, Any, int]], *, start: bool
    ) -> int:
        try:
            client = await self._connect()
        except NoDaemonError as error:
            # One that is there but hangs would only be in the way of another.
            if not start or "pid" in error.metadata or os.environ.get("CREWD_TASK_TOKEN"):
                raise
            await self._ensure()
            client = await self._connect()
        async with client:
            return await work(client)

    async def _connect(self) -> Client:
        return await Client.connect(
            state_dir=self.state_dir, socket=self.socket, client_name=f"crew/{__version__}"
        )

    async def _ensure(self) -> None:
        command = [_crewd(), "ensure", "--json"]
        if self.state_dir is not None:
            command += ["--state-dir", self.state_dir]
        child = await asyncio.create_subprocess_exec(
            *command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
        )
        _, said = await child.communicate()
        if child.returncode != 0:
            message, hint = _said(said.decode(errors="replace").strip())
            message = message or f"`crewd ensure` ended with {child.returncode}"
            raise Refusal(message, hint=hint, code=Exit.NO_DAEMON)


def json_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")(
        function
    )


SEQUENCE = click.IntRange(0, 2**63 - 1)


def duration(_ctx: click.Context, _param: click.Parameter, value: str | None) -> timedelta | None:
    """Read an option's time as people write it: `90`, `1.5s`, `2m`, `1h30m`."""
    try:
        return None if value is None else parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def read_text(source: str) -> str:
    """Give the text, or what is on stdin for `-`."""
    return read_stdin() if source == "-" else source


def read_stdin() -> str:
    try:
        text = sys.stdin.buffer.read().decode()
    except OSError as error:
        raise Refusal(f"cannot read stdin: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Refusal("stdin is not UTF-8 text") from None
    return text.replace("\r\n", "\n")


def _crewd() -> str:
    # Beside this command first: that one is of the same version.
    places = [Path(sys.argv[0]).absolute().parent, Path(sys.executable).absolute().parent]
    for place in places:
        if os.access(place / "crewd", os.X_OK) and not (place / "crewd").is_dir():
            return str(place / "crewd")
    found = shutil.which("crewd")
    if found is None:
        raise Refusal(
            f"no daemon runs for {locate.state_dir(os.environ)}, and there is no `crewd` to start",
            hint="install the daemon, crewd, beside this command, or put it into the PATH",
            code=Exit.NO_DAEMON,
        )
    return found


def _said(text: str) -> tuple[str, str]:
    try:
        error: dict[str, str] = json.loads(text)["error"]
        return error["message"], error.get("hint") or ""
    except (ValueError, KeyError, TypeError):
        return text, ""
