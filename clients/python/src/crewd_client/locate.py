"""Where a daemon and its clients meet: state directory, socket and token.

Daemon and clients apply the same functions to their own environment, so they agree without talking.
An empty variable counts as unset. Directories are compared with their symbolic links resolved.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import cast

MAX_SOCKET_BYTES = 100
DAEMON_FILE = "daemon.json"
TOKEN_FILE = "token"  # noqa: S105  # the name of a file

StrPath = str | os.PathLike[str]


class LocateError(Exception):
    """The rules lead to a place that must not be used."""


@dataclass(frozen=True, slots=True)
class DaemonFile:
    """The contents of `daemon.json`: what a running daemon tells of itself."""

    protocol: int
    instance_id: str
    store_id: str
    pid: int
    version: str
    socket: str
    token_file: str
    state_dir: str

    @classmethod
    def parse(cls, text: str) -> DaemonFile:
        """Read the file's text; a `ValueError` names what is wrong. Unknown keys are ignored."""
        loaded: object = json.loads(text)
        if not isinstance(loaded, dict):
            raise ValueError("not a JSON object")  # noqa: TRY004  # the file is bad, not the call
        data = cast("dict[str, object]", loaded)
        for field in fields(cls):
            expected = int if field.type == "int" else str
            value = data.get(field.name)
            if not isinstance(value, expected) or isinstance(value, bool):
                raise ValueError(f"{field.name}: {expected.__name__} expected")  # noqa: TRY004
        known = {field.name: data[field.name] for field in fields(cls)}
        return cls(**known)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    def text(self) -> str:
        """Give the text to write, atomically, into `daemon.json`."""
        return json.dumps(asdict(self), indent=1) + "\n"


@dataclass(frozen=True, slots=True)
class Location:
    """Where a client will look for the daemon, with the rule that decided each part."""

    state_dir: Path
    state_dir_source: str
    socket: Path
    socket_source: str
    token: str | None
    token_source: str
    task_token: bool
    daemon: DaemonFile | None
    notes: tuple[str, ...] = ()

    def is_served_by(self, state_dir: str) -> bool:
        """Tell whether a daemon with this state directory may be the one meant.

        Any may, if only its socket was named.
        """
        only_socket = _named(self.socket_source) and not _named(self.state_dir_source)
        return only_socket or Path(state_dir).resolve() == self.state_dir


def state_dir(env: Mapping[str, str], override: StrPath | None = None) -> Path:
    """Give the state directory: `--state-dir`, CREWD_STATE_DIR, else the default."""
    return _state_dir(env, override)[0]


def default_state_dir(env: Mapping[str, str]) -> Path:
    """Give the directory used when nothing names one: below XDG_STATE_HOME or the home."""
    base = _absolute(env.get("XDG_STATE_HOME"))
    return ((base or _home(env) / ".local" / "state") / "crewd").resolve()


def default_socket(state_dir: Path, env: Mapping[str, str]) -> Path:
    """Give the socket that the daemon of this state directory binds when none is named."""
    state_dir = state_dir.resolve()
    runtime = runtime_dir(env)
    candidates: list[Path] = []
    if runtime is not None and state_dir == default_state_dir(env):
        candidates.append(runtime / "crewd" / "crewd.sock")
    candidates.append(state_dir / "crewd.sock")
    name = f"{hashlib.sha256(os.fsencode(state_dir)).hexdigest()[:12]}.sock"
    if runtime is not None:
        candidates.append(runtime / "crewd" / name)
    candidates.append((_absolute(env.get("TMPDIR")) or _TMP) / _private_name() / name)
    fitting = (path for path in candidates if len(os.fsencode(path)) <= MAX_SOCKET_BYTES)
    return next(fitting, _TMP / _private_name() / name)


def runtime_dir(env: Mapping[str, str]) -> Path | None:
    """Give XDG_RUNTIME_DIR if it is usable: absolute and there."""
    path = _absolute(env.get("XDG_RUNTIME_DIR"))
    return path if path is not None and path.is_dir() else None


def private_dir_problem(directory: Path) -> str | None:
    """Tell why others could tamper with a directory; nothing if it is ours alone, or absent."""
    try:
        found = directory.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{directory}: {error.strerror}"
    if not stat.S_ISDIR(found.st_mode):
        return f"{directory} is not a directory"
    if found.st_uid != os.getuid():
        return f"{directory} belongs to user {found.st_uid}"
    if found.st_mode & 0o022:
        return f"{directory} can be written by others"
    return None


def make_socket_dir(socket: Path) -> None:
    """Make the directory of a socket, for us alone; refuse one that others could tamper with."""
    socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    problem = private_dir_problem(socket.parent)
    if problem is not None:
        raise LocateError(problem)


def find(
    env: Mapping[str, str], *, state_dir: StrPath | None = None, socket: StrPath | None = None
) -> Location:
    """Find state directory, socket and token as a client does. Reads files, starts nothing."""
    directory, directory_source = _state_dir(env, state_dir)
    daemon, notes = _read_daemon_file(directory)
    path, path_source = _socket(env, socket, directory=directory, daemon=daemon)
    if path.parent.name == _private_name() and (problem := private_dir_problem(path.parent)):
        raise LocateError(problem)
    token, token_source = _token(env, directory=directory, daemon=daemon)
    if token is None:
        notes = (*notes, f"no token: {token_source}")
    return Location(
        state_dir=directory,
        state_dir_source=directory_source,
        socket=path,
        socket_source=path_source,
        token=token,
        token_source=token_source,
        task_token=bool(env.get("CREWD_TASK_TOKEN")),
        daemon=daemon,
        notes=notes,
    )


def explain(location: Location) -> list[str]:
    """Tell in lines for people where things are and which rule decided."""
    daemon = location.daemon
    token = "none" if location.token is None else "found"
    return [
        f"state directory: {location.state_dir}  ({location.state_dir_source})",
        f"socket: {location.socket}  ({location.socket_source})",
        f"token: {token}  ({location.token_source})",
        f"daemon.json: version {daemon.version}, pid {daemon.pid}, instance {daemon.instance_id}"
        if daemon is not None
        else "daemon.json: none",
        *(f"note: {note}" for note in location.notes),
    ]


_TMP = Path("/tmp")  # noqa: S108  # the directory within is checked to be ours alone


def _named(source: str) -> bool:
    return source.startswith(("--", "CREWD_"))


def _state_dir(env: Mapping[str, str], override: StrPath | None) -> tuple[Path, str]:
    if override is not None:
        return _expand(override, env).resolve(), "--state-dir"
    if named := env.get("CREWD_STATE_DIR"):
        return _expand(named, env).resolve(), "CREWD_STATE_DIR"
    source = "XDG_STATE_HOME" if _absolute(env.get("XDG_STATE_HOME")) else "default"
    return default_state_dir(env), source


def _socket(
    env: Mapping[str, str],
    override: StrPath | None,
    *,
    directory: Path,
    daemon: DaemonFile | None,
) -> tuple[Path, str]:
    if override is not None:
        return _expand(override, env).absolute(), "--socket"
    if named := env.get("CREWD_SOCKET"):
        return _expand(named, env).absolute(), "CREWD_SOCKET"
    if daemon is not None:
        return Path(daemon.socket), DAEMON_FILE
    return default_socket(directory, env), "default"


def _token(
    env: Mapping[str, str], *, directory: Path, daemon: DaemonFile | None
) -> tuple[str | None, str]:
    # A worker's token stands alone: a worker must not reach for the operator's by mistake.
    for name in ("CREWD_TASK_TOKEN", "CREWD_TOKEN"):
        if token := env.get(name):
            return token, name
    if named := env.get("CREWD_TOKEN_FILE"):
        return _read_token(_expand(named, env), "CREWD_TOKEN_FILE")
    if daemon is not None and daemon.token_file:
        return _read_token(Path(daemon.token_file), f"token_file of {DAEMON_FILE}")
    return _read_token(directory / TOKEN_FILE, "default")


def _read_token(path: Path, rule: str) -> tuple[str | None, str]:
    try:
        token = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None, f"{rule}: {path} is not there"
    except OSError as error:
        return None, f"{rule}: {path}: {error.strerror}"
    except UnicodeDecodeError:
        return None, f"{rule}: {path} holds no token"
    return (token, f"{rule}: {path}") if token else (None, f"{rule}: {path} is empty")


def _read_daemon_file(directory: Path) -> tuple[DaemonFile | None, tuple[str, ...]]:
    path = directory / DAEMON_FILE
    try:
        daemon = DaemonFile.parse(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None, ()
    except OSError as error:
        return None, (f"{path}: {error.strerror}",)
    except ValueError as error:
        return None, (f"{path} is ignored: {error}",)
    if Path(daemon.state_dir).resolve() != directory:
        return None, (f"{path} is ignored: it is about {daemon.state_dir}",)
    return daemon, ()


def _expand(path: StrPath, env: Mapping[str, str]) -> Path:
    given = Path(path)
    return _home(env).joinpath(*given.parts[1:]) if given.parts[:1] == ("~",) else given


def _home(env: Mapping[str, str]) -> Path:
    return _absolute(env.get("HOME")) or Path(pwd.getpwuid(os.getuid()).pw_dir)


def _absolute(path: str | None) -> Path | None:
    return Path(path) if path and path.startswith("/") else None


def _private_name() -> str:
    return f"crewd-{os.getuid()}"
