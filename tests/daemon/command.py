"""The `crewd` command as a person types it, with a home of its own."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from crewd.instance import holder
from crewd.paths import StatePaths

CREWD = (sys.executable, "-m", "crewd.cli")
PATIENCE = 30.0


class Home:
    """An environment without any of ours, a place for state directories, and what was started."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.runtime = root / "run"
        self.runtime.mkdir(mode=0o700)
        given = {n: v for n, v in os.environ.items() if not n.startswith(("CREWD_", "XDG_"))}
        self.env = {
            **given,
            "HOME": str(root),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "XDG_RUNTIME_DIR": str(self.runtime),
        }
        self.state_dir = root / ".local" / "state" / "crewd"
        self._state_dirs = [self.state_dir]

    @property
    def paths(self) -> StatePaths:
        return StatePaths(self.state_dir)

    def another(self, name: str) -> Path:
        """Name another state directory."""
        self._state_dirs.append(self.root / name)
        return self._state_dirs[-1]

    def crewd(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*CREWD, *arguments],
            env={**self.env, **variables},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*CREWD, *arguments],
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ensure(self, *arguments: str) -> dict[str, object]:
        done = self.crewd("ensure", "--json", *arguments)
        assert done.returncode == 0, done.stderr
        told: dict[str, object] = json.loads(done.stdout)
        return told

    def pid(self, state_dir: Path | None = None) -> int:
        """Return the pid of the daemon that holds a state directory."""
        found = holder(StatePaths(state_dir or self.state_dir).lock)
        assert found is not None
        return found.pid

    def wait_until_free(self) -> None:
        """Return when the process that holds the state directory is gone."""
        found = holder(self.paths.lock)
        if found is not None:
            wait_for_end(found.pid)

    def clean_up(self) -> None:
        for state_dir in self._state_dirs:
            found = holder(StatePaths(state_dir).lock)
            if found is not None:
                os.kill(found.pid, signal.SIGKILL)
            with suppress(OSError, ValueError, KeyError):
                host = json.loads((state_dir / "host" / "host.json").read_text())
                os.kill(host["pid"], signal.SIGTERM)


def wait_for_end(pid: int) -> None:
    """Return when a process has ended."""
    assert has_ended(pid, patience=PATIENCE)


def has_ended(pid: object, patience: float = 0) -> bool:
    """Tell whether a process has ended; nobody needs to have reaped it."""
    try:
        descriptor = os.pidfd_open(int(str(pid)))
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], patience)[0])
    finally:
        os.close(descriptor)
