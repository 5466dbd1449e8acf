from __future__ import annotations

import os

from crewd.doctor import database
from crewd.doctor.finding import Severity
from crewd.store.db import WAL_LIMIT, known_migrations
from tests.doctor.patient import Patient


def test_no_database_is_nothing_to_say(patient: Patient) -> None:
    patient.vary(deep=True)
    assert [f for check in database.CHECKS for f in patient.found(check)] == []


def test_a_new_database_is_well_and_read_only_on_demand(patient: Patient) -> None:
    patient.database()
    assert [patient.is_well(check) for check in database.CHECKS] == [True, True, True]
    assert patient.found(database.integrity) == []
    patient.vary(deep=True)
    assert patient.one(database.integrity, "database.integrity").severity is Severity.OK


def test_the_database_of_a_newer_crewd_is_an_error(patient: Patient) -> None:
    patient.database()
    patient.execute("PRAGMA user_version = 99")
    found = patient.one(database.schema, "database.schema")
    assert (found.severity, found.details["schema"]) == (Severity.ERROR, "99")


def test_the_database_of_an_older_crewd_is_migrated_by_the_next_start(patient: Patient) -> None:
    patient.database()
    patient.execute("PRAGMA user_version = 0")
    found = patient.one(database.schema, "database.schema")
    assert found.severity is Severity.INFO
    assert found.details == {"schema": "0", "known": str(known_migrations()[-1].version)}


def test_a_wal_that_does_not_end_is_a_warning(patient: Patient) -> None:
    wal = patient.database().with_name("crewd.db-wal")
    wal.touch()
    os.truncate(wal, 4 * WAL_LIMIT + 1)
    found = patient.one(database.size, "database.wal")
    assert (found.severity, found.details["wal_bytes"]) == (
        Severity.WARNING,
        str(4 * WAL_LIMIT + 1),
    )


def test_what_is_no_database_is_an_error_that_names_the_copies(patient: Patient) -> None:
    patient.place.paths.database.write_text("not a database, but long enough to look" * 100)
    found = patient.one(database.schema, "database.schema")
    assert found.severity is Severity.ERROR
    assert "of which there is none beside it" in found.message
    (patient.state_dir / "crewd.db.backup-v1").touch()
    assert "crewd.db.backup-v1" in patient.one(database.schema, "database.schema").message
    assert found.command.endswith("crewd.db.damaged")


def test_damage_in_the_middle_is_found_by_reading_all(patient: Patient) -> None:
    file = patient.database()
    with file.open("r+b") as opened:
        size = os.fstat(opened.fileno()).st_size
        opened.seek(4096)
        opened.write(b"\xff" * (size - 2 * 4096))
    patient.vary(deep=True)
    found = patient.one(database.integrity, "database.integrity")
    assert found.severity is Severity.ERROR
    assert "cannot be read as a database" in found.message


def test_a_database_that_cannot_be_opened_is_not_called_damaged(patient: Patient) -> None:
    patient.place.paths.database.mkdir()
    found = patient.one(database.schema, "database.schema")
    assert found.severity is Severity.ERROR
    assert f"{patient.place.paths.database} cannot be read: " in found.message
    assert "damaged" not in found.command
