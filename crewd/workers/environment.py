"""The environment a worker starts with: little, known, and nothing of the daemon's own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from crewd.core.redaction.keys import is_secret_key
from crewd.workers.env_file import EnvFileError, read_env_file

BASE_NAMES: Final = ("HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR")
DEFAULT_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
OWN_PREFIX: Final = "CREWD_"
"""Variables that name the daemon, its token or the worker's place in a run."""


class MissingVariableError(Exception):
    """A variable that a task needs cannot be had. The message says which and where to put it."""


class Environment:
    """Builds environments from the daemon's own and from the user's `env` file.

    The file is read at each start that names a variable, so that a changed secret counts at once;
    what it says goes before what the daemon happened to be started with.
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
        self,
        *,
        path: str,
        given: Mapping[str, str],
        named: Sequence[str],
        own: Mapping[str, str],
        offered: Sequence[str] = (),
    ) -> dict[str, str]:
        """Return what the worker gets; the later of two of one name counts.

        Base, PATH, what is offered and there, the spec's variables, those read by name, and last
        crewd's own, which nobody else can set. Of PATH only the absolute entries are kept: a
        worker's directory must not decide which program a name means.
        """
        filed = self._filed() if named or offered else {}
        environment = {**self._base, "PATH": path or self._daemon.get("PATH", "")}
        environment.update(self._offered(offered, filed))
        environment.update(given)
        environment.update(self._named(named, filed))
        environment["PATH"] = absolute_entries(environment["PATH"]) or DEFAULT_PATH
        environment.update(own)
        return environment

    def secrets(
        self,
        *,
        given: Mapping[str, str],
        named: Sequence[str],
        own: Mapping[str, str],
        offered: Sequence[str] = (),
    ) -> tuple[str, ...]:
        """Return the values in a worker's environment that nobody else may see.

        They are looked up as `build` does, and never stored. What cannot be had now is left out.
        """
        try:
            filed = self._filed() if named or offered else {}
        except MissingVariableError:
            filed = {}
        found = {name: filed.get(name, self._daemon.get(name, "")) for name in named}
        told = {**self._offered(offered, filed), **given, **own}
        return (
            *(v for name, v in found.items() if is_secret_key(name) or not v.startswith("/")),
            *(v for name, v in told.items() if is_secret_key(name)),
        )

    def _offered(self, names: Sequence[str], filed: Mapping[str, str]) -> dict[str, str]:
        found = ((name, filed.get(name, self._daemon.get(name))) for name in names)
        return {
            name: value
            for name, value in found
            if value is not None and not name.startswith(OWN_PREFIX)
        }

    def _named(self, names: Sequence[str], filed: Mapping[str, str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for name in names:
            if name.startswith(OWN_PREFIX):
                raise MissingVariableError(
                    f"env_from names {name}: what begins with {OWN_PREFIX} is the daemon's own and "
                    "is not passed on; take it out"
                )
            value = filed.get(name, self._daemon.get(name))
            if value is None:
                raise MissingVariableError(
                    f"env_from names {name}, which is neither in the daemon's environment nor in "
                    f"{self._env_file}; add a line {name}=… there (mode 0600)"
                )
            found[name] = value
        return found

    def _filed(self) -> dict[str, str]:
        try:
            return read_env_file(self._env_file)
        except EnvFileError as error:
            raise MissingVariableError(str(error)) from error


def absolute_entries(path: str) -> str:
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if entry.startswith("/"))
