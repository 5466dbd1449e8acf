"""What a jsonl worker wrote, read leniently: the wrong kind of value is as good as none."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeVar, cast

import msgspec

from crewd.core.units import Span, seconds
from crewd.workers.text import cut

Fields = Mapping[str, object]
E = TypeVar("E", bound=StrEnum)

MAX_ID: Final = 256
"""Characters of an id. A longer one is no id: cut, it would name nothing."""
_MAX_SECONDS: Final = 100 * 365 * 86_400


def read_object(data: bytes) -> Fields | None:
    """Return the JSON object of a line, None if it is something else.

    What JavaScript and Python write beyond JSON proper (NaN, halves of surrogate pairs) is
    understood: a result must not be lost for it.
    """
    if data[:1] != b"{" and not data.lstrip(b" \t").startswith(b"{"):
        return None
    try:
        value: object = msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        value = _read_loosely(data)
    return cast("Fields", value) if isinstance(value, dict) else None


def _read_loosely(data: bytes) -> object:
    try:
        value: object = json.loads(data.decode("utf-8"))
        plain = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        return json.loads(plain)
    except (ValueError, RecursionError):
        return None


def compact_json(value: object) -> str | None:
    """Return the value as compact JSON text, None if it is too deep to be written."""
    try:
        return msgspec.json.encode(value).decode()
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def text_in(fields: Fields, key: str, limit: int) -> str:
    value = fields.get(key)
    return cut(value, limit) if isinstance(value, str) else ""


def id_in(fields: Fields, key: str = "id") -> str:
    value = fields.get(key)
    return value if isinstance(value, str) and len(value) <= MAX_ID else ""


def number_in(fields: Fields, key: str) -> float | None:
    """Return a finite number; True and False are none."""
    value = fields.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def span_in(fields: Fields, key: str) -> Span | None:
    number = number_in(fields, key)
    return seconds(number) if number is not None and 0 < number <= _MAX_SECONDS else None


def flag_in(fields: Fields, key: str, *, default: bool) -> bool:
    value = fields.get(key)
    return value if isinstance(value, bool) else default


def choice_in(fields: Fields, key: str, choices: type[E]) -> E | None:
    """Return the member named, in any case."""
    value = fields.get(key)
    if not isinstance(value, str):
        return None
    try:
        return choices(value.lower())
    except ValueError:
        return None
