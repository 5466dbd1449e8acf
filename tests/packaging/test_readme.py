"""The README, followed from top to bottom by somebody who has nothing but a checkout."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT
from tests.packaging.readme import PATIENCE, Reader, blocks
from tests.support.places import a_place

FIRST = "crew run --file run.yaml"


async def follow(reader: Reader, text: str, work: Path) -> str:
    """Do all that the text says; return what the first run printed in a terminal of its own."""
    async with AsyncExitStack() as stack:
        first: asyncio.subprocess.Process | None = None
        for block in blocks(text):
            if block.file:
                reader.folder = work
                reader.write(block)
            for command, shown in block.commands():
                if command == FIRST:
                    first = await reader.begin(command)
                    stack.callback(stop, first)
                else:
                    await reader.type(command, shown)
        assert first is not None
        printed, _ = await first.communicate()
        assert first.returncode == 0
    return printed.decode()


def stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()


@pytest.mark.timeout(2 * PATIENCE)
async def test_who_follows_the_readme_sees_what_it_says(index: None) -> None:
    del index
    with a_place() as home:
        work = home / "work"
        work.mkdir()
        reader = Reader(ROOT, {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin"})
        try:
            printed = await follow(reader, (ROOT / "README.md").read_text(), work)
        finally:
            await reader.type("crewd stop --all", "")
        assert printed == "yes\n"
        assert "completed" in reader.said["crew show"]
        assert_survived(reader)


def assert_survived(reader: Reader) -> None:
    """Assert that the run whose daemon was killed went on, and nothing of it is missing."""
    events = next(said for command, said in reader.said.items() if "crew events" in command)
    logs = next(said for command, said in reader.said.items() if "crew logs" in command)
    numbers = [int(re.split(r"\s+", line.strip())[0]) for line in events.splitlines()]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert logs == "testing\nall green\n"
    call = next(said for command, said in reader.said.items() if "crew call" in command)
    assert len(json.loads(call)["runs"]) == 2
