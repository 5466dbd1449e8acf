"""The environment a worker starts with: little, known, and nothing of the daemon's own."""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

BASE_NAMES: Final = ("HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR")
DEFAULT_PATH: Final = "/usr/local/bin:/usr/bin:/bin"


class MissingVariableError(Exception):
    """A variable that a task needs cannot be had. The message says which and where to put it."""


class Environment:
    """Builds environments from the daemon's own and from the user's `env` file.

    The file has lines `NAME=value`; it is read at each start so that a changed secret counts at
    once, and refused when others can read it.
    """

    def __init__(self, daemon: Mapping[str, str], env_file: Path) -> None:
        self._daemon = daemon
        self._env_file = env_file
        self._base = {
            name: value
            for name, value in daemon.items()
            if name in BASE_NAMES or name.startswith("LC_")
        } | {"TERM": "dumb"}

    def build(
        self, *, path: str, given: Mapping[str, str], named: Sequence[str], own: Mapping[str, str]
    ) -> dict[str, str]:
        """Return base, PATH, the spec's variables, those read by name, then crewd's own."""
        environment = {**self._base, "PATH": path or self._daemon.get("PATH", DEFAULT_PATH)}
        environment.update(given)
        if named:
            environment.update(self._read(named))
        environment.update(own)
        return environment

    def _read(self, named: Sequence[str]) -> dict[str, str]:
        filed = self._file() if any(name not in self._daemon for name in named) else {}
        found: dict[str, str] = {}
        for name in named:
            value = self._daemon.get(name, filed.get(name))
            if value is None:
                message = (
                    f"env_from names {name}, which is neither in the daemon's environment nor in "
                    f"{self._env_file}; add a line {name}=… there (mode 0600)"
                )
                raise MissingVariableError(message)
            found[name] = value
        return found

    def _file(self) -> dict[str, str]:
        try:
            mode = self._env_file.stat().st_mode
            text = self._env_file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as error:
            message = f"{self._env_file} cannot be read: {error}"
            raise MissingVariableError(message) from error
        if stat.S_IMODE(mode) & 0o077:
            message = f"{self._env_file} is readable by others; run: chmod 600 {self._env_file}"
            raise MissingVariableError(message)
        lines = (line.strip() for line in text.splitlines())
        pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
        return {name.strip(): value.strip() for name, sep, value in pairs if sep}
