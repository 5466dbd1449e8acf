"""The database file: opening it, and bringing it to the schema this crewd knows."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

MIGRATIONS: Final = Path(__file__).with_name("migrations")
WAL_LIMIT: Final = 16 * 1024 * 1024

_LOCK_TIMEOUT: Final = 10.0
_STATEMENTS: Final = 128


class Migration(NamedTuple):
    version: int
    script: str


class NewerDatabaseError(Exception):
    """The database was written by a crewd that knows more than this one. It was not touched."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"{path} has schema version {found}, this crewd knows versions up to {known}: "
            "start the crewd that wrote it, or one that is newer"
        )
        self.path = path
        self.found = found
        self.known = known


def known_migrations(folder: Path = MIGRATIONS) -> tuple[Migration, ...]:
    """Read the numbered files of the folder; their numbers are the schema versions."""
    scripts = sorted(folder.glob("[0-9]*.sql"))
    return tuple(Migration(int(path.name[:4]), path.read_text()) for path in scripts)


def open_writer(
    path: Path, migrations: Sequence[Migration] | None = None
) -> tuple[sqlite3.Connection, int]:
    """Return the one connection that writes, and its schema version, after migrating.

    A database older than the newest migration is first copied to `<name>.backup-v<its version>`.
    """
    steps = known_migrations() if migrations is None else migrations
    connection = sqlite3.connect(
        path,
        timeout=_LOCK_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_STATEMENTS,
    )
    try:
        version = _migrate(connection, path, steps)
        _set_pragmas(connection)
    except BaseException:
        connection.close()
        raise
    return connection, version


def open_reader(path: Path) -> sqlite3.Connection:
    """Return a connection that can neither write nor checkpoint."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro",
        uri=True,
        timeout=_LOCK_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_STATEMENTS,
    )
    connection.execute("PRAGMA query_only = 1")
    return connection


def _migrate(connection: sqlite3.Connection, path: Path, steps: Sequence[Migration]) -> int:
    found = _version(connection)
    known = steps[-1].version
    if found > known:
        raise NewerDatabaseError(path, found, known)
    if 0 < found < known:
        _back_up(connection, path.with_name(f"{path.name}.backup-v{found}"))
    for version, script in steps:
        if version > found:
            connection.executescript(f"BEGIN; {script}\n; PRAGMA user_version = {version}; COMMIT;")
    return _version(connection)


def _version(connection: sqlite3.Connection) -> int:
    version: int
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return version


def _back_up(connection: sqlite3.Connection, target: Path) -> None:
    """Copy the database; under its final name only when the copy is whole and on the disk."""
    partial = target.with_name(f"{target.name}.partial")
    partial.unlink(missing_ok=True)
    copy = sqlite3.connect(partial, isolation_level=None)
    try:
        connection.backup(copy)
    finally:
        copy.close()
    partial.replace(target)


def _set_pragmas(connection: sqlite3.Connection) -> None:
    # The size limit lets a WAL that outgrew it shrink back when it starts anew, so the file's
    # size tells when the next checkpoint is due. Within the limit the file is overwritten.
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "wal_autocheckpoint = 0",
        f"journal_size_limit = {WAL_LIMIT}",
        "temp_store = MEMORY",
        # An outbox row may have held a secret: nothing of it stays behind in a freed page.
        "secure_delete = ON",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()
