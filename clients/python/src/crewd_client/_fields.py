"""Names for fields that an older daemon knows by their numbers only."""

from __future__ import annotations

import re
from typing import cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from crewd_client.errors import CrewdError, Violation

_PART = re.compile(r"([^.\[]+)(\[[^\]]*\])?(?:\.|$)")


def named(error: CrewdError, request: Message) -> CrewdError:
    """Say which fields of the request the daemon does not know, in the words of this client."""
    if error.reason != "UNKNOWN_FIELD":
        return error
    top = cast("Descriptor", request.DESCRIPTOR)
    names = {each.field: _name(top, each.field) for each in error.violations}
    for path, name in names.items():
        error.message = error.message.replace(f"field {path};", f"field {name};")
    error.violations = tuple(
        Violation(names[each.field], each.description) for each in error.violations
    )
    return error


def _name(descriptor: Descriptor | None, path: str) -> str:
    """Give the path with its numbers as names, as far as they can be found."""
    said: list[str] = []
    for part, index in _PART.findall(path):
        field = _field(descriptor, part)
        said.append((part if field is None else field.name) + index)
        descriptor = None if field is None else _inner(field)
    return ".".join(said)


def _field(descriptor: Descriptor | None, part: str) -> FieldDescriptor | None:
    if descriptor is None:
        return None
    if part.isdecimal():
        return descriptor.fields_by_number.get(int(part))
    return descriptor.fields_by_name.get(part)


def _inner(field: FieldDescriptor) -> Descriptor | None:
    message = field.message_type
    if message is None or not message.GetOptions().map_entry:
        return message
    return message.fields_by_name["value"].message_type
