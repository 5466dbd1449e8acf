"""What a check found, and the place it looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from shlex import quote

from crewd.host.protocol import HostPaths
from crewd.paths import StatePaths, config_dir
from crewd_client.locate import default_state_dir


class Severity(StrEnum):
    """From worst to best. Only an error makes `crewd doctor` fail."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    OK = "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is so. `id` says what was looked at and stays the same between versions."""

    id: str
    severity: Severity
    message: str
    command: str = ""
    """What mends it, or shows more, to be typed as it stands; empty: nothing needs to be done."""
    details: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where to look: a state directory, as seen by who asks."""

    env: Mapping[str, str]
    state_dir: Path
    socket: Path | None = None
    """Where the daemon is to be found; None: at no place that is safe."""
    socket_problem: str = ""
    cwd: Path | None = None
    """A directory whose project is looked at too."""
    deep: bool = False
    """Do what takes its time: read the whole database, measure the disk."""
    system: Path = Path("/")
    """The root of the system's own files."""

    @property
    def paths(self) -> StatePaths:
        return StatePaths(self.state_dir)

    @property
    def hosts(self) -> HostPaths:
        return HostPaths(self.state_dir)

    @property
    def config_dir(self) -> Path:
        return config_dir(self.env)

    @property
    def home(self) -> Path:
        return Path(self.env.get("HOME") or "~").expanduser()

    def crewd(self, what: str) -> str:
        """Return a command about the daemon of this state directory."""
        return f"crewd {what}{self._named}"

    def crew(self, what: str) -> str:
        """Return a command about its runs."""
        return f"crew{self._named} {what}"

    @property
    def _named(self) -> str:
        usual = self.state_dir == default_state_dir(self.env)
        return "" if usual else f" --state-dir {quoted(self.state_dir)}"


Check = Callable[[Place], Iterable[Finding]]


ok = partial(Finding, severity=Severity.OK)
info = partial(Finding, severity=Severity.INFO)
warning = partial(Finding, severity=Severity.WARNING)
error = partial(Finding, severity=Severity.ERROR)


def quoted(path: Path | str) -> str:
    return quote(str(path))
