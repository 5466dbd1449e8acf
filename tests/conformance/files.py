"""The directories and files of one scenario."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tests.support.daemon import eventually

# JSON as it comes.
Step = dict[str, Any]
PATIENCE = 50.0


class StageError(Exception):
    """The step cannot be done as it is written."""


def text_of(step: Step, key: str, default: str | None = None) -> str:
    value = step.get(key, default)
    if not isinstance(value, str):
        raise StageError(f"{key}: text is expected, not {value!r}")
    return value


def texts_of(value: object) -> dict[str, str]:
    """Take a mapping of texts, as variables of an environment are."""
    given = cast("dict[str, object]", value if isinstance(value, dict) else {})
    return {name: text_of(given, name) for name in given}


def a_short_place() -> Path:
    """Make a directory: the path of a unix socket holds about a hundred bytes."""
    return Path(tempfile.mkdtemp(prefix="cs-")).resolve()


@dataclass(frozen=True, slots=True)
class Files:
    """Everything of a scenario lies below `root`; no step reaches beyond."""

    root: Path

    @classmethod
    def make(cls) -> Files:
        files = cls(a_short_place())
        for directory in (files.dir, files.state_dir.parent, files.runtime_dir):
            directory.mkdir(mode=0o700, parents=True)
        return files

    @property
    def dir(self) -> Path:
        return self.root / "dir"

    @property
    def runtime_dir(self) -> Path:
        return self.root / "run"

    @property
    def state_dir(self) -> Path:
        """The default one, so that most scenarios find the daemon without being told."""
        return self.root / ".local" / "state" / "crewd"

    def vars(self) -> dict[str, object]:
        return {
            "dir": str(self.dir),
            "home": str(self.root),
            "runtime_dir": str(self.runtime_dir),
            "state_dir": str(self.state_dir),
            "uid": os.getuid(),
        }

    def env(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "XDG_RUNTIME_DIR": str(self.runtime_dir),
        }

    def write(self, step: Step) -> None:
        path = self._path(step)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text_of(step, "text", ""))
        path.chmod(_mode(step, "600"))

    def read(self, step: Step) -> str:
        return self._path(step).read_text()

    def mkdir(self, step: Step) -> None:
        path = self._path(step)
        path.mkdir(parents=True, exist_ok=True)
        # Not by mkdir, which takes the umask off.
        path.chmod(_mode(step, "700"))

    def link(self, step: Step) -> None:
        self._path(step).symlink_to(text_of(step, "to"))

    def remove(self, step: Step) -> None:
        path = self._path(step)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()

    async def wait_file(self, step: Step) -> None:
        path = self._path(step)
        await eventually(path.exists, f"{path} is there", PATIENCE)

    async def clear(self) -> None:
        await asyncio.to_thread(shutil.rmtree, self.root)

    def _path(self, step: Step) -> Path:
        path = self.dir / text_of(step, "path")
        if not path.parent.resolve().is_relative_to(self.root) or path.name == "..":
            raise StageError(f"{path} is not of this scenario")
        return path


def _mode(step: Step, default: str) -> int:
    return int(text_of(step, "mode", default), 8)
