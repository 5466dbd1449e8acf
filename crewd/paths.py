"""Where the daemon keeps its things, in a directory that is its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from crewd.refusal import Refusal, refusing
from crewd_client.locate import DAEMON_FILE, TOKEN_FILE, private_dir_problem

_LOCK = "lock"
_DATABASE = "crewd.db"


@dataclass(frozen=True, slots=True)
class StatePaths:
    """The layout of one state directory. `root` is absolute, without symbolic links."""

    root: Path

    @property
    def database(self) -> Path:
        return self.root / _DATABASE

    @property
    def lock(self) -> Path:
        """Held by the daemon for life."""
        return self.root / _LOCK

    @property
    def start_lock(self) -> Path:
        """Held by the `crewd ensure` that starts the daemon."""
        return self.root / "start.lock"

    @property
    def daemon_file(self) -> Path:
        return self.root / DAEMON_FILE

    @property
    def token(self) -> Path:
        return self.root / TOKEN_FILE

    @property
    def task_key(self) -> Path:
        """What the tokens of workers are made with."""
        return self.root / "task.key"

    @property
    def transcripts(self) -> Path:
        return self.root / "transcripts"

    @property
    def artifacts(self) -> Path:
        return self.root / "artifacts"

    @property
    def log(self) -> Path:
        """Where a daemon started by `crewd ensure` writes."""
        return self.root / "daemon.log"

    def make(self) -> None:
        """Make the directories for us alone; refuse a place that others can change."""
        with refusing("cannot make the state directory", self.root):
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._check()
        with refusing("cannot write to the state directory", self.root):
            self.transcripts.mkdir(mode=0o700, exist_ok=True)
            self.artifacts.mkdir(mode=0o700, exist_ok=True)

    def _check(self) -> None:
        problem = private_dir_problem(self.root)
        if problem is not None:
            raise Refusal(
                f"the state directory is not safe: {problem}",
                hint=f"if it is yours: chmod 700 {self.root}; else name another with --state-dir",
            )
        with refusing("cannot read the state directory", self.root):
            self._close_to_readers()

    def _close_to_readers(self) -> None:
        if not self.root.stat().st_mode & 0o077:
            return
        names = {entry.name for entry in self.root.iterdir()}
        if names and not names & {_LOCK, _DATABASE}:
            raise Refusal(
                f"the state directory {self.root} holds other things and others can read it",
                hint="name a directory of its own with --state-dir",
            )
        self.root.chmod(0o700)


def config_dir(env: Mapping[str, str]) -> Path:
    """Return where the user's own files for crewd are: `env`, `trusted`, agents and the like."""
    home = Path(env.get("HOME") or "~").expanduser()
    base = env.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base.startswith("/") else home / ".config") / "crewd"


def write_private(path: Path, text: str) -> None:
    """Write a file that only we can read: whole or not at all, after a power cut too."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink()
        raise
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
