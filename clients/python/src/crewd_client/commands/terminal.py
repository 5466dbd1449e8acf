"""What is printed, and how: nothing a worker wrote may steer the terminal."""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from crewd_client.json import enum_name, to_line


def clean(text: str) -> str:
    """Make one harmless line of a text."""
    return " ".join(clean_block(text).split())


def clean_block(text: str) -> str:
    """Take out escape sequences and control characters; lines and tabs stay.

    Of a line that was written over, as progress bars are, what is meant is the last of it.
    """
    return _CONTROLS.sub("", _OVERWRITTEN.sub("", _SEQUENCES.sub("", text)))


def shorten(text: str, width: int) -> str:
    text = clean(text)
    return text if len(text) <= width else text[: width - 1] + "…"


def put(text: str = "") -> None:
    """Print a line of result."""
    sys.stdout.write(clean_block(text) + "\n" if sys.stdout.isatty() else text + "\n")
    sys.stdout.flush()


def put_json(data: object) -> None:
    put(to_line(data))


def note(text: str = "") -> None:
    """Print a line of progress, or a word beside the result."""
    sys.stderr.write(clean_block(text) + "\n")
    sys.stderr.flush()


def put_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns; the last one is as wide as it is."""
    table = [heads, *([clean(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)][:-1]
    for row in table:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        put("  ".join([*cells, row[-1]]).rstrip())


def at_terminal() -> bool:
    """Tell whether a person can be shown a table and asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def word(message: Message, field: str) -> str:
    """Give the name of an enum field's value: `needs_attention`."""
    descriptor = message.DESCRIPTOR.fields_by_name[field].enum_type
    number: int = getattr(message, field)
    return str(enum_name(cast("EnumDescriptor", descriptor), number))


def span(seconds: float) -> str:
    """Write a time as people say it: `3.2s`, `4m10s`, `2h05m`, `3d`."""
    whole = int(seconds)
    if whole < _MINUTE:
        return f"{max(seconds, 0):.1f}s" if seconds < _TENTHS else f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m{whole % _MINUTE:02}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h{whole % _HOUR // _MINUTE:02}m"
    return f"{whole // _DAY}d"


def size(count: int) -> str:
    """Write a number of bytes as people say it: `312 B`, `1.4 KiB`, `20 MiB`."""
    step = min(max(count.bit_length() - 1, 0) // 10, len(_SIZES) - 1)
    amount = count / (1 << 10 * step)
    digits = 1 if step and amount < _TENTHS else 0
    return f"{amount:.{digits}f} {_SIZES[step]}"


def seconds_between(start: Timestamp, end: Timestamp | None = None) -> float:
    """Give the seconds from one instant to another, or to now."""
    last = datetime.now(UTC) if end is None else end.ToDatetime(UTC)
    return (last - start.ToDatetime(UTC)).total_seconds()


def clock(time: Timestamp) -> str:
    return time.ToDatetime(UTC).astimezone().strftime("%H:%M:%S")


class Sink:
    """Writes bytes as they are to a file or pipe, and harmless text to a terminal."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._terminal = sys.stdout.isatty()

    def write(self, data: bytes) -> None:
        if self._terminal:
            sys.stdout.write(clean_block(self._decoder.decode(data)))
        else:
            sys.stdout.buffer.write(data)
        sys.stdout.flush()

    def finish(self) -> None:
        if self._terminal:
            sys.stdout.write(clean_block(self._decoder.decode(b"", final=True)))


_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_TENTHS = 10
_SIZES = ("B", "KiB", "MiB", "GiB")
_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c]*(?:\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
_OVERWRITTEN = re.compile(r"[^\n]*\r(?=[^\r\n])")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
