"""Secrets of every origin, and the only places on the disk where one may be found."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from crewd_client.v1.run_pb2 import RUN_STATUS_COMPLETED
from crewd_client.v1.run_service_pb2 import CreateRunRequest
from crewd_client.v1.run_stream_pb2 import OutputStream
from tests.support.daemon import Daemon
from tests.support.desk import Desk, script

ENV: Final = "run-env-value-1111"
FILE: Final = "env-file-value-2222"
PROMPT: Final = "prompt-secret-3333"
ARGUMENT: Final = "argument-secret-9999"
PRINTED: Final = "printed-secret-4444"
ASKED: Final = "asked-secret-5555"
ANSWERED: Final = "answered-secret-6666"
STEERED: Final = "steered-secret-7777"
DATA: Final = "data-secret-8888"
TASK: Final = "crewt_"

GIVEN: Final = frozenset({ENV, PROMPT, ARGUMENT})
"""What the run's creator wrote into its spec: stored as given."""
ALLOWED: Final = frozenset(
    {
        ("run_spec", "spec"),
        ("task_spec", "spec"),
        ("run", "title"),
        ("request", "response"),
    }
)
"""The spec itself, and what repeats it to its owner; `request` is what CreateRun answered."""
EVERYTHING: Final = (ENV, FILE, PROMPT, ARGUMENT, PRINTED, ASKED, ANSWERED, STEERED, DATA, TASK)


def leaky(desk: Desk) -> CreateRunRequest:
    """Describe a run of careless workers that are given secrets."""
    talks = script("a", "leaky", "--password", ARGUMENT)
    talks.adapter, talks.prompt, talks.title = "jsonl", f"password: {PROMPT}", f"token={PROMPT}"
    prints = script("b", "leaky", "plain")
    for task in (talks, prints):
        task.env_from.append("VAULT_ENTRY")
    request = desk.request(talks, prints, goal=f"secret: {PROMPT}")
    request.spec.title = f"api_key={PROMPT}"
    request.env.vars["DEPLOY_PASSWORD"] = ENV
    return request


async def played(desk: Desk, daemon: Daemon) -> str:
    """Run it to its end, with a daemon that dies in the middle."""
    run_id = (await desk.client.runs.CreateRun(leaky(desk))).run.id
    ask = await desk.asked(run_id)
    await daemon.restart()
    answered = await desk.answer(ask.id, f"password={ANSWERED}")
    assert answered.answer.text == "password=***"
    await desk.steer(run_id, "a", f"secret={STEERED}")
    assert (await desk.ended(run_id)).status == RUN_STATUS_COMPLETED
    return run_id


async def told(desk: Desk, run_id: str) -> bytes:
    """Return all that anyone is told of the run, but for its spec."""
    streams = (OutputStream.OUTPUT_STREAM_STDOUT, OutputStream.OUTPUT_STREAM_STDERR)
    outputs = [await desk.output(run_id, task, s) for task in ("a", "b") for s in streams]
    assert all(b"***" in output for output in outputs)
    events = [event.SerializeToString() for event in await desk.events(run_id)]
    asks = [ask.SerializeToString() for ask in await desk.asks(run_id)]
    results = [task.result.SerializeToString() for task in (await desk.tasks(run_id)).values()]
    return b"\n".join([*outputs, *events, *asks, *results])


def found_in(data: bytes) -> set[str]:
    return {secret for secret in EVERYTHING if secret.encode() in data}


def cells(database: Path) -> Iterator[tuple[tuple[str, str], bytes]]:
    """Give every value of every row with its table and column."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for (table,) in tables.fetchall():
            rows = connection.execute(f"SELECT * FROM {table}")  # noqa: S608 - its own name
            columns = [column[0] for column in rows.description]
            for row in rows:
                for column, value in zip(columns, row, strict=True):
                    yield (
                        (table, column),
                        value if isinstance(value, bytes) else str(value).encode(),
                    )
    connection.close()


async def test_secrets_are_nowhere_but_where_their_owner_put_them(daemon: Daemon) -> None:
    env_file = daemon.root / ".config" / "crewd" / "env"
    env_file.parent.mkdir(parents=True)
    env_file.touch(0o600)
    env_file.write_text(f"VAULT_ENTRY={FILE}\n")
    desk = await daemon.desk()
    run_id = await played(desk, daemon)
    assert found_in(await told(desk, run_id)) == set()

    daemon.send(signal.SIGTERM)
    await daemon.ended()

    database = daemon.state_dir / "crewd.db"
    places = {place for place, value in cells(database) if found_in(value)}
    assert places == ALLOWED
    files = [daemon.log, *(path for path in daemon.state_dir.rglob("*") if path.is_file())]
    leaks = {path: found_in(path.read_bytes()) for path in files}
    leaks[database] -= GIVEN
    assert {path: found for path, found in leaks.items() if found} == {}
    assert b"***" in b"".join(p.read_bytes() for p in files if "artifacts" in p.parts)
