"""Read what a controller sent with care, and write what it is told."""

from __future__ import annotations

import json
from typing import cast

Message = dict[str, object]

_MOST = 1 << 53  # What every language reads back unchanged from JSON.

_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class RefusedError(Exception):
    """A request that is answered with an error of this kind; nothing has changed by it."""

    def __init__(self, kind: str, message: str, **extra: object) -> None:
        # What is no UTF-8 in a file name is for the kernel, not for people.
        message = message.encode(errors="replace").decode()
        super().__init__(message)
        self.answer: Message = {"kind": kind, "message": message, **extra}


def line(message: Message) -> bytes:
    return _encode(message).encode("ascii") + b"\n"


def parsed(raw: bytes | bytearray) -> Message:
    """Return the JSON object of one line, or refuse it."""
    try:
        decoded: object = json.loads(raw)
    except (ValueError, RecursionError) as error:
        kind = "bad_request"
        raise RefusedError(kind, "not a line of JSON") from error
    if not isinstance(decoded, dict):
        raise _must_be("the line", "a JSON object")
    return cast("Message", decoded)


def text(message: Message, name: str) -> str:
    value = message.get(name)
    if isinstance(value, str):
        return value
    raise _must_be(name, "a string")


def whole(message: Message, name: str) -> int:
    value = message.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST:
        return value
    raise _must_be(name, "a whole number")


def flag(message: Message, name: str) -> bool:
    value = message.get(name, False)
    if isinstance(value, bool):
        return value
    raise _must_be(name, "true or false")


def texts(message: Message, name: str) -> list[str]:
    value = message.get(name)
    if isinstance(value, list):
        items = cast("list[object]", value)
        if all(isinstance(item, str) for item in items):
            return cast("list[str]", items)
    raise _must_be(name, "a list of strings")


def text_map(message: Message, name: str) -> dict[str, str]:
    value = message.get(name)
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value)
        if all(isinstance(item, str) for item in entries.values()):
            return cast("dict[str, str]", entries)
    raise _must_be(name, "an object of strings")


def _must_be(name: str, what: str) -> RefusedError:
    return RefusedError("bad_request", f"{name} must be {what}")
