from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from crewd.core.changes import Changes
from crewd.core.model import (
    Artifact,
    Ask,
    Attempt,
    Outbox,
    Run,
    Task,
)
from crewd.store.db import known_migrations
from crewd.store.group import Group, pack
from crewd.store.queries import SQL
from crewd.store.rows import ARTIFACT, ASK, ATTEMPT, OUTBOX, RUN, TASK, Table, Value, to_json
from tests.store.values import rows

TABLES: tuple[Table[Any], ...] = (RUN, TASK, ATTEMPT, ASK, ARTIFACT, OUTBOX)
APART = {"run": {"spec"}, "task": {"spec"}}
ADDED = {"run": {"cwd", "labels", "deleted_sequence"}}

generated = settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
)


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for migration in known_migrations():
        connection.executescript(migration.script)
    yield connection
    connection.close()


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_columns_are_the_fields_of_the_dataclass(
    connection: sqlite3.Connection, table: Table[Any]
) -> None:
    info = connection.execute("SELECT name FROM pragma_table_info(?)", (table.name,)).fetchall()
    columns = {name for (name,) in info}

    assert columns == set(table.fixed_columns + table.body_columns) | ADDED.get(table.name, set())


def test_every_statement_compiles(connection: sqlite3.Connection) -> None:
    for statement in SQL.values():
        try:
            connection.execute(f"EXPLAIN {statement}")
        except sqlite3.ProgrammingError as error:
            assert "binding" in str(error)  # noqa: PT017 - it compiled; only values are missing


def written(
    connection: sqlite3.Connection, changes: Changes, select: str, *place: str
) -> tuple[Value, ...]:
    group = Group()
    group.add(pack("run_a", (), changes))
    connection.execute("BEGIN")
    try:
        group.write(connection)
        row: tuple[Value, ...]
        (row,) = connection.execute(select, place).fetchall()
    finally:
        connection.execute("ROLLBACK")
    return row


@generated
@given(run=rows(Run))
def test_a_run_comes_back_as_it_went_in(connection: sqlite3.Connection, run: Run) -> None:
    run.id = "run_a"
    changes = Changes(run=run, run_is_new=True)

    assert RUN.decode(written(connection, changes, SQL["runs"], to_json([run.id]))) == run


@generated
@given(task=rows(Task))
def test_a_task_comes_back_as_it_went_in(connection: sqlite3.Connection, task: Task) -> None:
    task.run_id = "run_a"
    changes = Changes(added_tasks=[task])
    place = to_json([task.run_id])

    assert TASK.decode(written(connection, changes, SQL["tasks_of_runs"], place)) == task


@generated
@given(attempt=rows(Attempt))
def test_an_attempt_comes_back_as_it_went_in(
    connection: sqlite3.Connection, attempt: Attempt
) -> None:
    select = SQL["attempts"].split("AND EXISTS")[0]
    changes = Changes(added_attempts=[attempt])
    row = written(connection, changes, select, attempt.run_id, attempt.task_id)

    assert ATTEMPT.decode(row) == attempt


@generated
@given(first=rows(Ask), last=rows(Ask))
def test_an_ask_comes_back_as_it_was_last(
    connection: sqlite3.Connection, first: Ask, last: Ask
) -> None:
    first.id, first.run_id = last.id, last.run_id = "ask_a", "run_a"
    changes = Changes(asks=[first, last])

    assert ASK.decode(written(connection, changes, SQL["asks"], to_json([first.id]))) == last


@generated
@given(first=rows(Artifact), again=rows(Artifact))
def test_an_artifact_stays_as_it_was_recorded_first(
    connection: sqlite3.Connection, first: Artifact, again: Artifact
) -> None:
    first.id = again.id = "art_a"
    changes = Changes(artifacts=[first, again])
    select = SQL["artifact"].split("JOIN")[0]

    assert ARTIFACT.decode(written(connection, changes, f"{select} WHERE id = ?", "art_a")) == first


@generated
@given(message=rows(Outbox))
def test_a_message_comes_back_as_it_went_in(
    connection: sqlite3.Connection, message: Outbox
) -> None:
    message = replace(message, run_id="run_a")
    changes = Changes(outbox=[message])
    place = to_json([message.run_id])

    assert OUTBOX.decode(written(connection, changes, SQL["outbox_to_recover"], place)) == message


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_field_has_a_place(table: Table[Any]) -> None:
    record = {
        RUN: Run,
        TASK: Task,
        ATTEMPT: Attempt,
        ASK: Ask,
        ARTIFACT: Artifact,
        OUTBOX: Outbox,
    }[table]
    stored = set(table.fixed_columns + table.body_columns) | APART.get(table.name, set())

    assert stored == {field.name for field in fields(record)}
