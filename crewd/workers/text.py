"""Worker output as text of bounded size: always valid UTF-8, cut at whole characters."""

from __future__ import annotations

from typing import Final

_MAX_CHARACTER: Final = 4
"""Bytes of the longest character."""


def cut(text: str, limit: int) -> str:
    """Return the text, or as much of its beginning as fits in `limit` bytes."""
    if len(text) * _MAX_CHARACTER <= limit:
        return text
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= limit else raw[:limit].decode("utf-8", "ignore")


def is_over(text: str, limit: int) -> bool:
    if len(text) * _MAX_CHARACTER <= limit:
        return False
    return len(text.encode("utf-8", "replace")) > limit


def tail_text(data: bytes, limit: int, *, cut_before: bool) -> tuple[str, bool]:
    """Return the end of `data` as text of at most `limit` bytes, and whether anything is missing.

    With `cut_before` the data is itself a tail and may begin inside a character. What is no
    UTF-8 becomes U+FFFD, which may need more room than the bytes it stands for.
    """
    text = _whole_characters(data).decode("utf-8", "replace") if cut_before else _decoded(data)
    raw = text.encode()
    if len(raw) <= limit:
        return text, cut_before
    return _whole_characters(raw[-limit:]).decode("utf-8", "replace"), True


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _whole_characters(data: bytes) -> bytes:
    """Drop the rest of a character whose first byte was cut off."""
    for start in range(min(_MAX_CHARACTER - 1, len(data))):
        if data[start] & 0xC0 != 0x80:  # noqa: PLR2004 - 10xxxxxx continues a character
            return data[start:]
    return data[_MAX_CHARACTER - 1 :]
