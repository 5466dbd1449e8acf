"""The named statements of `queries.sql`, with the columns of the dataclasses filled in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from crewd.store.rows import ARTIFACT, ASK, ATTEMPT, OUTBOX, RUN, TASK, Table

_NAMED: Final = re.compile(r"^-- name: (\w+)\n-- .+\n((?:(?!-- name: ).*\n)+)", re.MULTILINE)
_PLACE: Final = re.compile(r"\{([a-z.]+)\}")


def _load() -> Mapping[str, str]:
    text = Path(__file__).with_name("queries.sql").read_text()
    places = dict(_places())
    statements = {
        name: _PLACE.sub(lambda place: places[place[1]], body).strip().removesuffix(";")
        for name, body in _NAMED.findall(text)
    }
    return MappingProxyType(statements)


def _places() -> Iterator[tuple[str, str]]:
    tables: tuple[Table[Any], ...] = (RUN, TASK, ATTEMPT, ASK, ARTIFACT, OUTBOX)
    for table in tables:
        columns = table.fixed_columns + table.body_columns
        yield f"{table.name}.columns", ", ".join(columns)
        yield f"{table.name}.marks", ", ".join("?" for _ in columns)
        yield f"{table.name}.selected", ", ".join(f"{table.name}.{name}" for name in columns)
        yield f"{table.name}.assignments", ", ".join(f"{n} = ?" for n in table.body_columns)
        yield f"{table.name}.taken", ", ".join(f"{n} = excluded.{n}" for n in table.body_columns)


SQL: Final = _load()
