"""What the host and its controller agree on: names, limits, paths.

The protocol is one JSON object per line over a unix socket. A request carries an integer `id` and
a `verb` and gets exactly one reply, `{"id", "ok": true, ...}` or `{"id", "ok": false, "error":
{"kind", "message"}}`; every other line carries `"news"`. The protocol only grows: unknown verbs
are refused by name, unknown keys are ignored.
"""

from __future__ import annotations

import os
import stat
from binascii import crc32
from pathlib import Path

PROTOCOL = 1
VERSION = "0.1.0"
FEATURES = ("spool", "stdin_seq", "keep_children", "lost", "pass")

STDOUT = "stdout"
STDERR = "stderr"
STREAMS = (STDOUT, STDERR)

SEGMENT_BYTES = 16 << 20
STDIN_BYTES = 2 << 20
UNREAD_BYTES = 64 << 20
UNREAD_BYTES_ALONE = 1 << 30
LINE_BYTES = 32 << 20
IDLE_EXIT_SECONDS = 10.0
ATTEMPT_VARIABLE = "CREWD_ATTEMPT"

EXIT_ANOTHER_HOST = 3

_SOCKET_PATH_BYTES = (
    100  # sun_path holds 108 with its end mark; the rest is room for a lock's suffix.
)
_JOB_KEY_BYTES = 512
_JOB_KEY_PARTS = 3
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_SAFE_NAME_CHARACTERS = 180
_SECRET_BYTES = 32


class HostPaths:
    """Where a host of one state directory keeps its things; the same for host and daemon."""

    __slots__ = ("info", "journal", "key", "lock", "log", "marker", "root", "socket", "spool")

    def __init__(self, state_dir: Path) -> None:
        state_dir = state_dir.resolve()
        self.root = state_dir / "host"
        self.lock = self.root / "lock"
        self.info = self.root / "host.json"
        self.key = self.root / "key"
        self.marker = self.root / "marker"
        self.journal = self.root / "journal"
        self.spool = self.root / "spool"
        self.log = self.root / "host.log"
        self.socket = _socket_path(state_dir, self.root / "host.sock")

    def make_private(self) -> None:
        """Make the directories, or raise PermissionError when they are somebody else's."""
        for directory in (self.root, self.spool, self.socket.parent):
            make_private(directory)

    def segment(self, job: str, stream: str, number: int) -> Path:
        return self.spool / f"{spool_name(job)}.{stream}.{number}"


def valid_job_key(key: str) -> bool:
    """Tell whether this can be `run/task/attempt`: three printable parts or more."""
    if not key.isprintable() or len(key.encode()) > _JOB_KEY_BYTES:
        return False
    parts = key.split("/")
    return len(parts) >= _JOB_KEY_PARTS and all(parts)


def spool_name(job: str) -> str:
    """Return a file name that no other job key has and that holds no separator or dot."""
    name = "".join(c if c in _SAFE else _escaped(c) for c in job)
    if len(name) <= _SAFE_NAME_CHARACTERS:
        return name
    return f"{name[:_SAFE_NAME_CHARACTERS]}+{len(name)}-{crc32(job.encode()):08x}"


def make_private(directory: Path) -> None:
    """Make a directory that only this user can enter, or raise PermissionError."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        message = f"{directory} is not a directory of this user"
        raise PermissionError(message)
    if found.st_mode & 0o077:
        directory.chmod(0o700)


def secret(path: Path) -> str:
    """Return the secret kept in this file; who needs it first makes it."""
    try:
        return path.read_text(encoding="ascii")
    except FileNotFoundError:
        return _made_secret(path)


def _made_secret(path: Path) -> str:
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, os.urandom(_SECRET_BYTES).hex().encode("ascii"))
    finally:
        os.close(descriptor)
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        pass  # Another process was first: its secret is the one.
    finally:
        draft.unlink()
    return path.read_text(encoding="ascii")


def _escaped(character: str) -> str:
    return "".join(f"%{byte:02x}" for byte in character.encode())


def _socket_path(state_dir: Path, usual: Path) -> Path:
    if len(os.fsencode(usual)) <= _SOCKET_PATH_BYTES:
        return usual
    # OpenSSL, which both of these load, costs the host 4 MB: only a long path pays for it.
    import hashlib  # noqa: PLC0415
    import tempfile  # noqa: PLC0415

    name = f"{hashlib.sha256(os.fsencode(state_dir)).hexdigest()[:12]}-host.sock"
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if Path(runtime).is_absolute():
        return Path(runtime) / "crewd" / name
    return Path(tempfile.gettempdir()) / f"crewd-{os.geteuid()}" / name
