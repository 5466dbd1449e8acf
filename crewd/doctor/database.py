"""The database: of a schema this crewd knows, of a size that is well, and whole."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from crewd.doctor.finding import Check, Finding, Place, error, info, ok, quoted, warning
from crewd.store.db import WAL_LIMIT, known_migrations, open_reader

_MIB: Final = 1 << 20
_LONG_WAL: Final = 4 * WAL_LIMIT
_SHOWN: Final = 5
_DAMAGE: Final = ("SQLITE_CORRUPT", "SQLITE_NOTADB")


def open_quietly(database: Path) -> sqlite3.Connection:
    """Return a connection to read by that leaves no file behind.

    A database without a WAL is one that nobody has open: to read it as such SQLite would make one.
    """
    if database.with_name(f"{database.name}-wal").exists():
        return open_reader(database)
    return sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro&immutable=1", uri=True)


def schema(place: Place) -> Iterator[Finding]:
    database = place.paths.database
    if not database.exists():
        return
    try:
        with closing(open_quietly(database)) as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.DatabaseError as problem:
        yield _unreadable(place, "database.schema", problem)
        return
    known = known_migrations()[-1].version
    details = {"schema": str(version), "known": str(known)}
    if version > known:
        yield error(
            id="database.schema",
            message=f"{database} was written by a newer crewd (schema {version}, this one knows "
            f"{known}): start that one",
            details=details,
        )
    elif version < known:
        yield info(
            id="database.schema",
            message=f"{database} is of an older crewd (schema {version}): the next start makes a "
            f"copy of it and brings it to {known}",
            command=place.crewd("ensure"),
            details=details,
        )
    else:
        yield ok(
            id="database.schema", message=f"the database has schema {version}", details=details
        )


def size(place: Place) -> Iterator[Finding]:
    database = place.paths.database
    if not database.exists():
        return
    wal = database.with_name(f"{database.name}-wal")
    waiting = wal.stat().st_size if wal.exists() else 0
    details = {"bytes": str(database.stat().st_size), "wal_bytes": str(waiting)}
    if waiting > _LONG_WAL:
        yield warning(
            id="database.wal",
            message=f"{waiting / _MIB:.0f} MiB wait to be copied into the database, "
            f"{WAL_LIMIT // _MIB} are usual: a program keeps it from being read to the end",
            command=f"fuser -v {quoted(database)}",
            details=details,
        )
    else:
        text = f"the database has {database.stat().st_size / _MIB:.1f} MiB"
        yield ok(id="database.wal", message=text, details=details)


def integrity(place: Place) -> Iterator[Finding]:
    """Read all of the database; only on demand, since it takes its time."""
    database = place.paths.database
    if not place.deep or not database.exists():
        return
    try:
        with closing(open_quietly(database)) as connection:
            rows = connection.execute(f"PRAGMA quick_check({_SHOWN})").fetchall()
    except sqlite3.DatabaseError as problem:
        yield _unreadable(place, "database.integrity", problem)
        return
    if rows == [("ok",)]:
        yield ok(id="database.integrity", message="the database is whole")
    else:
        yield _damaged(place, "database.integrity", "; ".join(text for (text,) in rows))


def _unreadable(place: Place, identity: str, problem: sqlite3.DatabaseError) -> Finding:
    if problem.sqlite_errorname.startswith(_DAMAGE):
        return _damaged(place, identity, str(problem))
    return error(
        id=identity,
        message=f"{place.paths.database} cannot be read: {problem}",
        command=f"fuser -v {quoted(place.paths.database)}",
    )


def _damaged(place: Place, identity: str, problem: str) -> Finding:
    database = place.paths.database
    return error(
        id=identity,
        message=f"{database} cannot be read as a database ({problem}): put a copy back that is "
        f"whole, {_copies(database)}, or move it away to begin anew",
        command=f"{place.crewd('stop --all')}; mv {quoted(database)} {quoted(database)}.damaged",
    )


def _copies(database: Path) -> str:
    found = sorted(file.name for file in database.parent.glob(f"{database.name}.backup-v*"))
    return f"such as {found[-1]}" if found else "of which there is none beside it"


CHECKS: Final[tuple[Check, ...]] = (schema, size, integrity)
