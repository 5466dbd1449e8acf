"""Small things of the wire: instants and spans, cut texts, framing by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from crewd.core.units import Instant, Span

KIB: Final = 1024
MIB: Final = 1024 * KIB
_MICROS: Final = 1_000_000
_LENGTH_DELIMITED: Final = 2
_SEVEN_BITS: Final = 0x7F
_UTF8_MOST: Final = 4


def stamp(target: Timestamp, instant: Instant | None) -> None:
    """Set the instant; None leaves the field unset."""
    if instant is not None:
        seconds, micros = divmod(instant, _MICROS)
        target.seconds = seconds
        target.nanos = micros * 1000


def timestamp(instant: Instant) -> Timestamp:
    seconds, micros = divmod(instant, _MICROS)
    return Timestamp(seconds=seconds, nanos=micros * 1000)


def duration(span: Span) -> Duration:
    seconds, micros = divmod(span, _MICROS)
    return Duration(seconds=seconds, nanos=micros * 1000)


def span(value: Duration) -> Span:
    """Return the duration in whole microseconds."""
    return Span(value.seconds * _MICROS + value.nanos // 1000)


def size_of(text: str) -> int:
    """Return the length in bytes."""
    return len(text) if text.isascii() else len(text.encode())


def cut(text: str, limit: int) -> str:
    """Return at most `limit` bytes of it, never part of a character."""
    if len(text) * _UTF8_MOST <= limit or (len(text) <= limit and size_of(text) <= limit):
        return text
    return text[:limit].encode()[:limit].decode(errors="ignore")


def cut_all(texts: Sequence[str], limit: int) -> list[str]:
    """Return the first of the texts, `limit` bytes in all."""
    kept: list[str] = []
    for text in texts:
        if limit <= 0:
            break
        kept.append(cut(text, limit))
        limit -= size_of(kept[-1])
    return kept


def varint(number: int) -> bytes:
    encoded = bytearray()
    while number > _SEVEN_BITS:
        encoded.append(number & _SEVEN_BITS | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def framed(field: int, data: bytes) -> bytes:
    """Return a message that is already encoded as that field of another."""
    return b"%b%b%b" % (varint(field << 3 | _LENGTH_DELIMITED), varint(len(data)), data)


_SHORT_LENGTHS: Final = tuple(varint(length) for length in range(4096))


def repeated(tag: bytes, items: Iterable[bytes]) -> bytes:
    """Return encoded messages as one repeated field, whose tag is given encoded."""
    lengths = _SHORT_LENGTHS
    known = len(lengths)
    parts: list[bytes] = []
    for data in items:
        size = len(data)
        parts += (tag, lengths[size] if size < known else varint(size), data)
    return b"".join(parts)


ITEMS_TAG: Final = varint(1 << 3 | _LENGTH_DELIMITED)
"""The tag of field 1, where every list and every stream has its items."""
