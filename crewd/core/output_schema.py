"""The data a task must hand in, checked against the JSON Schema it declares (draft 2020-12)."""

from __future__ import annotations

import json
from typing import Any, Final

_LISTED: Final = 20
_SHOWN: Final = 300


def schema_problem(schema_json: str) -> str:
    """Return what is wrong with the schema itself; empty when nothing is."""
    # Imported here: only who declares a schema pays for it.
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415

    try:
        Draft202012Validator.check_schema(json.loads(schema_json))
    except SchemaError as error:
        return f"{error.json_path}: {error.message}"[:_SHOWN]
    return ""


def problems_of(schema_json: str, data_json: str) -> tuple[str, ...]:
    """Return every way in which the data misses the schema, each with its place."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    if not data_json:
        return ("no data was handed in",)
    validator: Any = Draft202012Validator(json.loads(schema_json))
    found = validator.iter_errors(json.loads(data_json))
    told = [f"{error.json_path}: {error.message}"[:_SHOWN] for error in found]
    return tuple(sorted(told)[:_LISTED])
