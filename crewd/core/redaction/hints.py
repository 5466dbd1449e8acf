"""Where a secret may be: a quick look that lets clean output pass at the speed of memory.

Every rule needs one of these hints in its line. They say nothing of themselves: the lines they
are in are worth a closer look, all others are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_FOLDED: Final = (
    b"secret", b"pass", b"auth", b"pwd", b"credential", b"bearer", b"jwt", b"xox", b"xapp-",
    b"glpat-", b"curl", b"-----begin",
)  # fmt: skip
"""Looked for in lower case."""
_EXACT: Final = (b"IA", b"AIza", b"eyJ")
"""Of AKIA and ASIA only what both have."""
_K: Final = re.compile(rb"k(?:ey|(?<=tok)en(?!s)|(?<=cook)ie|(?<=sk)-)")
"""One scan for key, token, cookie and sk-: their k is the rarest letter they have."""
_LONG: Final = re.compile(rb"_[a-z0-9]{16}")
_LONG_TEXT: Final = re.compile(_LONG.pattern.decode())
"""What ghp_, npm_, hf_, sk_live_, crewt_ and their like are followed by."""


def has_hint(text: str) -> bool:
    """Whether any line may hold a secret."""
    folded = text.lower()
    return (
        "key" in folded
        or "token" in folded
        or "pass" in folded
        or "auth" in folded
        or "secret" in folded
        or "cookie" in folded
        or "credential" in folded
        or "pwd" in folded
        or "bearer" in folded
        or "jwt" in folded
        or ("-" in text and _has_dashed(folded))
        or ("_" in text and _LONG_TEXT.search(folded) is not None)
        or ("@" in text and "://" in text)
        or "IA" in text
        or "AIza" in text
        or "eyJ" in text
        or "curl" in folded
    )


def _has_dashed(folded: str) -> bool:
    return (
        "sk-" in folded
        or "xox" in folded
        or "xapp-" in folded
        or "glpat-" in folded
        or "-----begin" in folded
    )


def lines_with_hints(data: bytes) -> list[tuple[int, int]]:
    """Return the lines worth a closer look as ranges, in order; adjoining ones are joined."""
    starts: dict[int, int] = {}
    folded = data.lower()
    for hint in _FOLDED:
        _note_all(folded, hint, starts)
    for hint in _EXACT:
        _note_all(data, hint, starts)
    for pattern in (_K, _LONG):
        _note_matches(folded, pattern, starts)
    if b"@" in data:
        _note_all(data, b"://", starts)
    return list(_joined(starts))


def _note_all(data: bytes, hint: bytes, starts: dict[int, int]) -> None:
    at = data.find(hint)
    while at >= 0:
        at = data.find(hint, _note_line(data, at, starts))


def _note_matches(data: bytes, pattern: re.Pattern[bytes], starts: dict[int, int]) -> None:
    match = pattern.search(data)
    while match is not None:
        match = pattern.search(data, _note_line(data, match.start(), starts))


def _note_line(data: bytes, at: int, starts: dict[int, int]) -> int:
    """Note the line that has the byte at `at`; return its end."""
    start = data.rfind(b"\n", 0, at) + 1
    end = starts.get(start)
    if end is None:
        end = data.find(b"\n", at) + 1 or len(data)
        starts[start] = end
    return end


def _joined(starts: dict[int, int]) -> Iterator[tuple[int, int]]:
    begin, until = 0, 0
    for start in sorted(starts):
        if start != until:
            if until:
                yield begin, until
            begin = start
        until = starts[start]
    if until:
        yield begin, until
