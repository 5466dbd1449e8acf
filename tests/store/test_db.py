from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from crewd.store import NewerDatabaseError
from crewd.store.db import Migration, known_migrations, open_reader, open_writer

KNOWN = known_migrations()
NEXT = Migration(KNOWN[-1].version + 1, "CREATE TABLE added (id TEXT) STRICT;")
BROKEN = Migration(NEXT.version, "CREATE TABLE added (id TEXT) STRICT; SELECT nothing;")


def pragma(connection: sqlite3.Connection, name: str) -> object:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return value


def test_a_new_database_has_the_newest_schema(tmp_path: Path) -> None:
    connection, version = open_writer(tmp_path / "crewd.db")
    with closing(connection):
        assert version == KNOWN[-1].version
        assert pragma(connection, "auto_vacuum") == 2
        assert pragma(connection, "journal_mode") == "wal"
        assert pragma(connection, "synchronous") == 2
        assert pragma(connection, "wal_autocheckpoint") == 0
    assert [path.name for path in tmp_path.iterdir()] == ["crewd.db"]


def test_each_store_has_an_id_of_its_own(tmp_path: Path) -> None:
    ids: set[str] = set()
    for name in ("a.db", "b.db"):
        with closing(open_writer(tmp_path / name)[0]) as connection:
            ids.add(connection.execute("SELECT value FROM meta WHERE key='store_id'").fetchone())
    assert len(ids) == 2


def test_a_newer_database_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "crewd.db"
    open_writer(path, [*KNOWN, NEXT])[0].close()
    before = path.read_bytes()

    with pytest.raises(NewerDatabaseError) as refusal:
        open_writer(path)
    assert str(path) in str(refusal.value)
    assert f"schema version {NEXT.version}" in str(refusal.value)
    assert f"up to {KNOWN[-1].version}" in str(refusal.value)
    assert path.read_bytes() == before


def test_an_older_database_is_backed_up_and_migrated(tmp_path: Path) -> None:
    path = tmp_path / "crewd.db"
    with closing(open_writer(path)[0]) as connection:
        connection.execute("UPDATE meta SET value = 'here' WHERE key = 'store_id'")

    connection, version = open_writer(path, [*KNOWN, NEXT])
    with closing(connection):
        assert version == NEXT.version
        assert connection.execute("SELECT * FROM added").fetchall() == []
    backup = tmp_path / f"crewd.db.backup-v{KNOWN[-1].version}"
    with closing(open_writer(backup)[0]) as connection:
        found = connection.execute("SELECT value FROM meta WHERE key = 'store_id'").fetchone()
    assert found == ("here",)


def test_a_migration_that_fails_leaves_the_database_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "crewd.db"
    open_writer(path)[0].close()
    with pytest.raises(sqlite3.OperationalError, match="nothing"):
        open_writer(path, [*KNOWN, BROKEN])

    connection, version = open_writer(path)
    with closing(connection):
        assert version == KNOWN[-1].version


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    writer, _ = open_writer(tmp_path / "crewd.db")
    reader = open_reader(tmp_path / "crewd.db")
    with (
        closing(writer),
        closing(reader),
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        reader.execute("DELETE FROM meta")


def test_migrations_are_numbered_without_a_hole() -> None:
    assert [migration.version for migration in KNOWN] == list(range(1, len(KNOWN) + 1))
