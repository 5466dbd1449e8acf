"""The JSON form of the contract, as `crew` prints and reads it.

Field names as in the proto; enum values without prefix in lower case; 64-bit integers as numbers;
values that are not set but have a default are there. An event's payload is under `data`.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar, cast

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

EVENT = "crewd.v1.Event"
Path = tuple[str | int, ...]
M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with what was given, and where."""

    path: Path
    message: str

    def __str__(self) -> str:
        return f"{spell(self.path)}: {self.message}" if self.path else self.message


class JsonError(ValueError):
    """What was given does not fit; all problems at once."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(map(str, self.problems)))


@dataclass(frozen=True, slots=True)
class Plain:
    """A scalar that was written without quotes: where text is expected, it is meant as text."""

    text: str
    value: float | bool | None


def to_json(message: Message) -> dict[str, object]:
    """Give the message as what `json.dumps` takes."""
    shown: dict[str, object] = {
        name: encode(getattr(message, name))
        for name, has_presence, encode in _encoders(cast("Descriptor", message.DESCRIPTOR))
        if not has_presence or message.HasField(name)
    }
    if message.DESCRIPTOR.full_name == EVENT:
        payload = message.WhichOneof("payload")
        shown["data"] = shown.pop(payload) if payload is not None else {}
    return shown


def to_line(data: object) -> str:
    """Give the data as one line without anything that could upset a terminal."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def from_json(data: object, kind: type[M]) -> M:
    """Make a message of parsed JSON; `JsonError` lists everything that is wrong."""
    message, problems = read_json(data, kind)
    if problems:
        raise JsonError(problems)
    return message


def read_json(data: object, kind: type[M]) -> tuple[M, list[Problem]]:
    """Make what can be made of parsed JSON, and list everything that is wrong."""
    message = kind()
    reader = _Reader()
    reader.read(message, data, ())
    return message, reader.problems


def enum_name(descriptor: EnumDescriptor, number: int) -> str | int:
    """Give the value's name, lower case and without prefix; an unknown one stays a number."""
    return _enum_names(descriptor).get(number, number)


def parse_duration(text: str) -> timedelta:
    """Read `90`, `1.5s`, `2m` or `1h30m`; a `ValueError` says what is wrong."""
    found = _DURATION.fullmatch(text.strip())
    if found is None or not any(found.groups()):
        raise ValueError(f"{text!r} is no duration: write e.g. 30s, 1.5s, 2m or 1h30m")
    parts = {unit: float(value) for unit, value in found.groupdict().items() if value}
    seconds = sum(value * _UNITS[unit] for unit, value in parts.items())
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise ValueError(f"{text!r} is too long") from None


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Give a sentence to add when a word is not known but resembles one; else nothing."""
    close = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.6)
    return f", did you mean {close[0]!r}?" if close else ""


def spell(path: Path) -> str:
    """Write a path as people do: `tasks[2].retry`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


_UNSAFE = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_NUMBER = r"\d+(?:\.\d*)?|\.\d+"
_DURATION = re.compile(
    rf"(?P<s0>{_NUMBER})|(?:(?P<d>{_NUMBER})d)?(?:(?P<h>{_NUMBER})h)?(?:(?P<m>{_NUMBER})m)?"
    rf"(?:(?P<s>{_NUMBER})s)?(?:(?P<ms>{_NUMBER})ms)?"
)
_UNITS = {"s0": 1, "d": 86_400, "h": 3_600, "m": 60, "s": 1, "ms": 0.001}
_INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
_FLOATS = {FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT}
_KINDS: dict[type, str] = {
    dict: "a mapping",
    list: "a list",
    str: "text",
    bool: "a boolean",
    type(None): "nothing",
}
Encode = Callable[[Any], object]


@cache
def _encoders(descriptor: Descriptor) -> tuple[tuple[str, bool, Encode], ...]:
    return tuple(
        (field.name, field.has_presence, _field_encoder(field)) for field in descriptor.fields
    )


def _field_encoder(field: FieldDescriptor) -> Encode:
    entry = _map_entry(field)
    if entry is not None:
        value = _value_encoder(entry.fields_by_name["value"])
        return lambda items: {str(key): value(items[key]) for key in sorted(items)}
    one = _value_encoder(field)
    if field.is_repeated:
        return lambda items: [one(item) for item in items]
    return one


def _value_encoder(field: FieldDescriptor) -> Encode:
    if field.enum_type is not None:
        names = _enum_names(field.enum_type)
        return lambda number: names.get(number, number)
    if field.message_type is not None:
        return _MESSAGES.get(field.message_type.full_name, to_json)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return lambda data: base64.b64encode(data).decode()
    return lambda value: value


def _duration(duration: Duration) -> str:
    text = duration.ToJsonString()
    return f"{text[:-1].rstrip('0').rstrip('.')}s" if "." in text else text


_MESSAGES: Mapping[str, Encode] = {
    Duration.DESCRIPTOR.full_name: _duration,
    Timestamp.DESCRIPTOR.full_name: lambda time: time.ToJsonString(),
    Struct.DESCRIPTOR.full_name: json_format.MessageToDict,
}


@cache
def _enum_names(descriptor: EnumDescriptor) -> dict[int, str]:
    prefix = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", descriptor.name).upper() + "_"
    return {value.number: value.name.removeprefix(prefix).lower() for value in descriptor.values}


def _map_entry(field: FieldDescriptor) -> Descriptor | None:
    kind = field.message_type
    return kind if kind is not None and kind.GetOptions().map_entry else None


class _Reader:
    """Fills messages and collects what is wrong instead of stopping at it."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def read(self, message: Message, data: object, path: Path) -> None:
        if not isinstance(data, dict):
            self._wrong(path, "a mapping", data)
            return
        fields = dict(message.DESCRIPTOR.fields_by_name)
        given = cast("dict[object, object]", data)
        if message.DESCRIPTOR.full_name == EVENT:
            given = _with_payload(given)
        for key, value in given.items():
            field = cast("FieldDescriptor | None", fields.get(str(key)))
            if field is None:
                hint = did_you_mean(str(key), fields)
                self._add((*path, str(key)), f"unknown key {str(key)!r}{hint}")
            elif not _is_null(value):
                self._set(message, field, value, (*path, field.name))

    def _set(self, message: Message, field: FieldDescriptor, value: object, path: Path) -> None:
        if _map_entry(field) is not None:
            self._set_map(message, field, value, path)
        elif field.is_repeated:
            self._set_list(message, field, value, path)
        elif field.message_type is not None:
            part = getattr(message, field.name)
            part.SetInParent()
            self._message(part, value, path)
        else:
            scalar = self._scalar(field, value, path)
            if scalar is not None:
                setattr(message, field.name, scalar)

    def _set_list(
        self, message: Message, field: FieldDescriptor, value: object, path: Path
    ) -> None:
        if not isinstance(value, list):
            self._wrong(path, "a list", value)
            return
        items: Any = getattr(message, field.name)
        for index, item in enumerate(cast("list[object]", value)):
            if field.message_type is not None:
                self._message(items.add(), item, (*path, index))
            else:
                scalar = self._scalar(field, item, (*path, index))
                if scalar is not None:
                    items.append(scalar)

    def _set_map(self, message: Message, field: FieldDescriptor, value: object, path: Path) -> None:
        if not isinstance(value, dict):
            self._wrong(path, "a mapping", value)
            return
        items: Any = getattr(message, field.name)
        field = cast("Descriptor", field.message_type).fields_by_name["value"]
        for key, item in cast("dict[object, object]", value).items():
            name = str(key)
            if field.message_type is not None:
                self._message(items[name], item, (*path, name))
            else:
                scalar = self._scalar(field, item, (*path, name))
                if scalar is not None:
                    items[name] = scalar

    def _message(self, message: Message, value: object, path: Path) -> None:
        try:
            if isinstance(message, Duration):
                message.FromTimedelta(_timedelta(value))
            elif isinstance(message, Timestamp):
                message.FromJsonString(_text(value))
            elif isinstance(message, Struct):
                json_format.ParseDict(_free(value), message)
            else:
                self.read(message, value, path)
        except (ValueError, json_format.ParseError) as error:
            self._add(path, str(error))

    def _scalar(self, field: FieldDescriptor, value: object, path: Path) -> object:
        try:
            return _scalar(field, value)
        except ValueError as error:
            self._add(path, str(error))
        return None

    def _wrong(self, path: Path, expected: str, value: object) -> None:
        self._add(path, f"{expected} is expected, not {_kind(value)}")

    def _add(self, path: Path, message: str) -> None:
        self.problems.append(Problem(path, message))


def _with_payload(given: dict[object, object]) -> dict[object, object]:
    payload = given.get("data")
    rest = {key: value for key, value in given.items() if key != "data"}
    return rest | {given["kind"]: payload} if payload and "kind" in given else rest


def _scalar(field: FieldDescriptor, value: object) -> object:
    if field.enum_type is not None:
        return _enum(field.enum_type, value)
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        text = _text(value)
        return _bytes(text) if field.type == FieldDescriptor.TYPE_BYTES else text
    plain = value.value if isinstance(value, Plain) else value
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        if not isinstance(plain, bool):
            raise ValueError(f"true or false is expected, not {_kind(value)}")
        return plain
    return _number(field, value, plain)


def _number(field: FieldDescriptor, value: object, plain: object) -> object:
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        raise ValueError(f"a number is expected, not {_kind(value)}")  # noqa: TRY004
    if field.cpp_type in _FLOATS:
        return float(plain)
    if not isinstance(plain, int):
        raise ValueError(f"a whole number is expected, not {plain}")  # noqa: TRY004
    low, high = _INTEGERS[field.cpp_type]
    if not low <= plain <= high:
        raise ValueError(f"{plain} is out of range: {low} to {high}")
    return plain


def _enum(descriptor: EnumDescriptor, value: object) -> int:
    names = _enum_names(descriptor)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    word = _text(value).lower().replace("-", "_")
    known = {name: number for number, name in names.items()}
    known |= {each.name.lower(): each.number for each in descriptor.values}
    if word not in known:
        choices = [name for number, name in names.items() if number]
        hint = did_you_mean(word, choices)
        raise ValueError(f"{_text(value)!r} is none of {', '.join(choices)}{hint}")
    return known[word]


def _text(value: object) -> str:
    text = value.text if isinstance(value, Plain) else value
    if not isinstance(text, str) or _is_null(value):
        raise ValueError(f"text is expected, not {_kind(value)}")
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError("the text is not valid Unicode")
    return text


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("base64 is expected") from None


def _free(value: object) -> dict[str, object]:
    """Give data whose shape is its author's own, as JSON has it."""
    if not isinstance(value, dict):
        raise ValueError(f"a mapping is expected, not {_kind(value)}")  # noqa: TRY004
    return {str(k): _free_value(v) for k, v in cast("dict[object, object]", value).items()}


def _free_value(value: object) -> object:
    if isinstance(value, Plain):
        return value.value
    if isinstance(value, dict):
        return _free(cast("object", value))
    if isinstance(value, list):
        return [_free_value(item) for item in cast("list[object]", value)]
    return value


def _timedelta(value: object) -> timedelta:
    plain = value.text if isinstance(value, Plain) else value
    if isinstance(plain, bool) or not isinstance(plain, str | int | float):
        raise ValueError(f"a duration is expected, not {_kind(value)}")  # noqa: TRY004
    return parse_duration(str(plain))


def _is_null(value: object) -> bool:
    return value is None or (isinstance(value, Plain) and value.value is None)


def _kind(value: object) -> str:
    plain = value.value if isinstance(value, Plain) else value
    return _KINDS.get(type(plain), "a number")
