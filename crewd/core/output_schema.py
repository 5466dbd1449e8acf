"""The data a task must hand in, checked against the JSON Schema it declares (draft 2020-12).

Both come from strangers: nothing is fetched, patterns are matched in linear time, and what cannot
be checked is told as what is wrong with it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

_LISTED: Final = 20
_SHOWN: Final = 300
_UNREADABLE: Final = (ValueError, OverflowError, RecursionError)


def schema_problem(schema_json: str) -> str:
    """Return what is wrong with the schema itself; empty when nothing is."""
    try:
        _validator(schema_json)
    except _UNREADABLE as error:
        return _first_line(error)
    return ""


def problems_of(schema_json: str, data_json: str) -> tuple[str, ...]:
    """Return every way in which the data misses the schema, each with its place."""
    if not data_json:
        return ("no data was handed in",)
    try:
        found = _validator(schema_json).iter_errors(json.loads(data_json))
        told = [f"{_place(error.instance_path)}: {_first_line(error)}" for error in found]
    except _UNREADABLE as error:
        return (f"the data cannot be checked: {_first_line(error)}",)
    return tuple(sorted(told)[:_LISTED])


def _validator(schema_json: str) -> Draft202012Validator:
    # Imported here: only who declares a schema pays for it.
    from jsonschema_rs import Draft202012Validator, RegexOptions  # noqa: PLC0415

    return Draft202012Validator(
        json.loads(schema_json), offline=True, pattern_options=RegexOptions()
    )


def _place(path: list[str | int]) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return f"${''.join(steps)}"


def _first_line(error: Exception) -> str:
    return str(getattr(error, "message", error)).partition("\n")[0][:_SHOWN]
