"""Dataclasses as columns: scalars as they are, enums and truths plain, nested values as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, fields
from enum import Enum
from operator import attrgetter
from types import NoneType
from typing import Any, ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar, cast, get_args
from typing import get_type_hints as type_hints

import msgspec

from crewd.core.model import (
    Artifact,
    Ask,
    Attempt,
    Outbox,
    Run,
    Task,
)

Value = str | int | float | bytes | None
Values = tuple[Value, ...]

_SCALARS: Final = frozenset({str, int, float, bytes})
_UNSET: Final = object()
_encode_json = msgspec.json.Encoder().encode


class Record(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


R = TypeVar("R", bound=Record)


class _Codec(NamedTuple):
    """How a field becomes a column and back. Its default and None are looked up, not computed."""

    encode: Callable[[Any], Value]
    decode: Callable[[Any], object]
    default: object = _UNSET
    default_value: Value = None


class Table(Generic[R]):
    """How one dataclass is laid out as columns.

    The `fixed` columns are written when the row is new, the body then and with every update;
    fields kept `apart` have a table of their own.
    """

    def __init__(
        self, record: type[R], name: str, fixed: Sequence[str], apart: Sequence[str] = ()
    ) -> None:
        hints = type_hints(record)
        codecs = {f.name: _codec(hints[f.name], f) for f in fields(record)}
        body = [name for name in codecs if name not in fixed and name not in apart]
        self.name = name
        self.fixed_columns = tuple(fixed)
        self.body_columns = tuple(body)
        self._make = cast("Callable[..., R]", record)
        self._fixed = attrgetter(*fixed)
        self._body = attrgetter(*body)
        self._encoders = [(i, c) for i, n in enumerate(body) if (c := codecs[n]) is not None]
        self._fields = (*fixed, *body, *apart)
        self._decoders = [(n, c) for n in self._fields if (c := codecs[n]) is not None]

    def fixed(self, row: R) -> Values:
        return self._fixed(row)

    def body(self, row: R) -> Values:
        values: list[Any] = list(self._body(row))
        for index, (encode, _, default, default_value) in self._encoders:
            value = values[index]
            if value is default:
                values[index] = default_value
            elif value is not None:
                values[index] = encode(value)
        return tuple(values)

    def decode(self, columns: Sequence[Value]) -> R:
        """Build the row from its columns in the order fixed, body, apart."""
        values: dict[str, Any] = dict(zip(self._fields, columns, strict=True))
        for name, (_, decode, default, default_value) in self._decoders:
            value = values[name]
            if value is None:
                continue
            known = default is not _UNSET and value == default_value
            values[name] = default if known else decode(value)
        return self._make(**values)


def to_json(value: object) -> str:
    return _encode_json(value).decode()


def _codec(hint: object, field: Field[Any]) -> _Codec | None:
    """Return how the field is converted, or None when SQLite takes it as it is."""
    kind = _without_none(hint)
    kind = getattr(kind, "__supertype__", kind)
    if kind in _SCALARS:
        return None
    if kind is bool:
        return _Codec(int, bool)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _Codec(str.__str__, {m.value: m for m in kind}.__getitem__)
    decode = msgspec.json.Decoder(cast("type[object]", kind)).decode
    default = field.default
    if default is MISSING or default is None:
        return _Codec(to_json, decode)
    return _Codec(to_json, decode, default, "[]" if default == () else "{}")


def _without_none(hint: object) -> object:
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    return kinds[0] if NoneType in get_args(hint) and len(kinds) == 1 else hint


RUN: Final = Table(Run, "run", fixed=("id", "status"), apart=("spec",))
TASK: Final = Table(Task, "task", fixed=("run_id", "id", "position"), apart=("spec",))
ATTEMPT: Final = Table(Attempt, "attempt", fixed=("run_id", "task_id", "number"))
ASK: Final = Table(Ask, "ask", fixed=("id", "run_id"))
ARTIFACT: Final = Table(Artifact, "artifact", fixed=("id", "run_id"))
OUTBOX: Final = Table(Outbox, "outbox", fixed=("run_id", "task_id", "attempt", "seq"))
