"""A daemon in use from an installation, as a person has it who never saw this repository."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.daemon.command import has_ended
from tests.packaging.index import Venv
from tests.support.places import a_place


@dataclass(frozen=True, slots=True)
class Installation:
    """`versions`: of all that is installed, by name."""

    venv: Venv
    home: Path
    versions: dict[str, str]

    def run(self, *command: str, code: int = 0) -> str:
        """Run a command; return what it prints."""
        done = self.venv.run(*command, home=self.home)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def told(self, *command: str, code: int = 0) -> list[dict[str, Any]]:
        """Run a command that prints JSON lines."""
        return [json.loads(line) for line in self.run(*command, "--json", code=code).splitlines()]

    @contextmanager
    def started(self, *command: str, code: int = 0) -> Generator[subprocess.Popen[str]]:
        """Run a command beside the test, which has to end before the test does."""
        with subprocess.Popen(
            [self.venv.bin / command[0], *command[1:]],
            cwd=self.home,
            env=self.venv.env(self.home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            except BaseException:
                process.kill()
                raise
        assert process.returncode == code


@contextmanager
def in_use(venv: Venv) -> Generator[Installation]:
    """Start the daemon by its own command, and end it and its host by `crewd stop --all`."""
    listing = venv.run("python", "-c", _LISTING, home=venv.bin)
    with a_place() as home:
        installation = Installation(venv, home, json.loads(listing.stdout))
        (daemon,) = installation.told("crewd", "ensure")
        host = json.loads((Path(daemon["state_dir"]) / "host" / "host.json").read_text())
        pids = (int(daemon["pid"]), int(host["pid"]))
        try:
            yield installation
            installation.run("crewd", "stop", "--all")
            assert all(map(has_ended, pids))
        finally:
            for pid in pids:
                if not has_ended(pid):
                    os.kill(pid, signal.SIGKILL)


_LISTING = (
    "import json; from importlib.metadata import distributions as d;"
    "print(json.dumps({each.name.lower().replace('_', '-'): each.version for each in d()}))"
)
