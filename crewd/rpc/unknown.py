"""Fields of a request that this daemon does not know: a new safety flag must not be dropped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from crewd.core.errors import CrewdError, Reason, Violation


def refuse_unknown_fields(request: Message) -> None:
    """Raise UNKNOWN_FIELD if the request or anything in it has a field without a name here."""
    known = type(request)()
    known.CopyFrom(request)
    known.DiscardUnknownFields()
    if known.ByteSize() == request.ByteSize():
        return
    fields = list(_unknown(request, ""))
    raise CrewdError(
        Reason.UNKNOWN_FIELD,
        f"this daemon does not know the field {fields[0]}; it may be older than the client",
        violations=[Violation(field, "unknown to this daemon") for field in fields],
        field=fields[0],
    )


def _unknown(message: Message, path: str) -> Iterator[str]:
    """Yield the paths of unknown fields; such a field has only its number as a name."""
    unknown = UnknownFieldSet(message)
    for index in range(len(unknown)):
        yield f"{path}{unknown[index].field_number}"
    for descriptor, value in message.ListFields():
        for name, inner in _messages(value):
            yield from _unknown(inner, f"{path}{descriptor.name}{name}.")


def _messages(value: object) -> Iterator[tuple[str, Message]]:
    if isinstance(value, Message):
        yield "", value
    elif isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)
        for key, inner in entries.items():
            if isinstance(inner, Message):
                yield f"[{key}]", inner
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for index, inner in enumerate(cast("Sequence[object]", value)):
            if isinstance(inner, Message):
                yield f"[{index}]", inner
