"""What a daemon is told: its options, else the environment, else the defaults."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from crewd.paths import StatePaths
from crewd.refusal import Exit, Refusal
from crewd_client import locate


class HostMode(StrEnum):
    """Whether the daemon may start a host, or only connect to one that a service manager owns."""

    AUTO = "auto"
    CONNECT = "connect"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """AUTO is CONSOLE at a terminal, else JSON."""

    AUTO = "auto"
    CONSOLE = "console"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What was typed; None: not typed."""

    state_dir: str | None = None
    socket: str | None = None
    host: str | None = None
    max_workers: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    paths: StatePaths
    socket: Path
    host: HostMode
    max_workers: int
    heartbeat_interval: timedelta
    log_level: LogLevel
    log_format: LogFormat


def read_config(env: Mapping[str, str], options: Options) -> Config:
    """Decide what the daemon goes by; a refusal names the variable and what it may be."""
    state_dir = locate.state_dir(env, options.state_dir)
    return Config(
        paths=StatePaths(state_dir),
        socket=_socket(env, options.socket, state_dir),
        host=_choice(HostMode, options.host or "", "--host") or HostMode.AUTO,
        max_workers=_max_workers(env, options.max_workers),
        heartbeat_interval=_interval(env, "CREWD_HEARTBEAT_INTERVAL", timedelta(seconds=15)),
        log_level=_chosen(LogLevel, env, "CREWD_LOG_LEVEL") or LogLevel.INFO,
        log_format=_chosen(LogFormat, env, "CREWD_LOG_FORMAT") or LogFormat.AUTO,
    )


_Choice = TypeVar("_Choice", bound=StrEnum)
_SPAN = re.compile(r"(\d+(?:\.\d+)?)s")
_MAX_WORKERS = 4096


def _socket(env: Mapping[str, str], option: str | None, state_dir: Path) -> Path:
    # Not what daemon.json says: that is what the daemon before us was told.
    named = option or env.get("CREWD_SOCKET")
    if not named:
        return locate.default_socket(state_dir, env)
    return Path(named).expanduser().absolute()


def _max_workers(env: Mapping[str, str], option: int | None) -> int:
    if option is not None:
        return _counted(str(option), "--max-workers")
    given = env.get("CREWD_MAX_WORKERS")
    return _counted(given, "CREWD_MAX_WORKERS") if given else max(16, 2 * (os.cpu_count() or 1))


def _counted(given: str, name: str) -> int:
    if given.isascii() and given.isdigit() and 1 <= int(given) <= _MAX_WORKERS:
        return int(given)
    raise _wrong(name, given, f"a number from 1 to {_MAX_WORKERS}")


def _interval(env: Mapping[str, str], name: str, default: timedelta) -> timedelta:
    given = env.get(name)
    if not given:
        return default
    found = _SPAN.fullmatch(given)
    if found is None or not (span := timedelta(seconds=float(found[1]))):
        raise _wrong(name, given, 'a time in seconds above zero, as "15s" or "0.5s"')
    return span


def _chosen(kind: type[_Choice], env: Mapping[str, str], name: str) -> _Choice | None:
    return _choice(kind, env.get(name, ""), name)


def _choice(kind: type[_Choice], given: str, name: str) -> _Choice | None:
    if not given:
        return None
    try:
        return kind(given.lower())
    except ValueError:
        raise _wrong(name, given, "one of " + ", ".join(kind)) from None


def _wrong(name: str, given: str, allowed: str) -> Refusal:
    return Refusal(f"{name} is {given!r}", hint=f"it must be {allowed}", exit_code=Exit.USAGE)
