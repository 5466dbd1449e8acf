"""Follows a text as its reader does: writes the files it shows, types its commands, reads on.

A fenced block of `yaml` or `python` is the file that the words before it name last; lines of a
`console` block that begin with `$ ` are typed, the others show what such a command prints. Ids and
pids that are shown stand for those that the reader sees.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.support.daemon import eventually

SHOWN: Final = re.compile(r"\b(?:(run|ask)_[a-z0-9]{10}|(?<=pid )\d+)\b")
PATIENCE: Final = 300.0
_BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE: Final = re.compile(r"`([\w.-]+\.\w+)`")


@dataclass(frozen=True, slots=True)
class Block:
    """`file`: the one that is named by what is written between the block before and this one."""

    language: str
    text: str
    file: str

    def commands(self) -> Iterator[tuple[str, str]]:
        """Give each command with what is shown of its output."""
        if self.language != "console":
            return
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown


def blocks(text: str) -> list[Block]:
    found: list[Block] = []
    end = 0
    for match in _BLOCK.finditer(text):
        named = _FILE.findall(text[end : match.start()])
        found.append(Block(match[1], match[2], named[-1] if named else ""))
        end = match.end()
    return found


@dataclass(slots=True)
class Reader:
    """Has one shell, whose directory and variables stay from command to command."""

    folder: Path
    env: dict[str, str]
    said: dict[str, str] = field(default_factory=dict[str, str])
    _seen: dict[str, str] = field(default_factory=dict[str, str])

    def write(self, block: Block) -> None:
        (self.folder / block.file).write_text(block.text)

    async def type(self, command: str, shown: str) -> None:
        """Type the command, again until it prints something like each id and pid that is shown."""
        wanted = list(SHOWN.finditer(shown))

        def seen() -> bool:
            done = self._run(self._with_seen(command))
            assert wanted or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
            self.said[command] = done.stdout
            kinds = {match[1]: match[0] for match in SHOWN.finditer(done.stdout)}
            self._seen |= {match[0]: kinds[match[1]] for match in wanted if match[1] in kinds}
            return all(match[1] in kinds for match in wanted)

        await eventually(seen, f"{command} prints {shown}")

    async def begin(self, command: str) -> asyncio.subprocess.Process:
        """Type a command into a terminal that is then left alone."""
        return await asyncio.create_subprocess_shell(
            command,
            cwd=self.folder,
            env=self.env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )

    def _with_seen(self, command: str) -> str:
        for shown, seen in self._seen.items():
            command = command.replace(shown, seen)
        return command

    def _run(self, command: str) -> subprocess.CompletedProcess[str]:
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb") as variables:
            try:
                done = subprocess.run(
                    ["bash", "-c", f"{command}\ncode=$?; env -0 >&{writing}; exit $code"],
                    cwd=self.folder,
                    env=self.env,
                    pass_fds=[writing],
                    check=False,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=PATIENCE,
                )
            finally:
                os.close(writing)
            pairs = (pair.partition("=") for pair in variables.read().decode().split("\0") if pair)
            self.env = {name: value for name, _, value in pairs if name not in {"_", "SHLVL"}}
        return done
