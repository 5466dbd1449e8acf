"""Secrets in text, masked; everything else is left as it is, byte for byte.

The same text comes out however it was cut into blocks of whole lines: no rule looks beyond a line,
but for PEM blocks, and what is known of one of those at a line's end is one number.
"""

from __future__ import annotations

import json
import re
from typing import Final

from crewd.core.redaction.blocks import BEGIN, LONGEST, end_in_line, end_in_lines
from crewd.core.redaction.documents import is_json, redact_json
from crewd.core.redaction.hints import has_hint, lines_with_hints
from crewd.core.redaction.known import NOTHING_KNOWN, KnownSecrets
from crewd.core.redaction.lines import redact_lines
from crewd.core.redaction.spans import MASK

SEAM: Final = 4096
"""Masked on both sides of a cut inside a line: a secret across the cut is no longer than this."""

_MASK: Final = MASK.encode()
_JSON_START: Final = re.compile(rb"^[ \t]*+[{\[\"]", re.MULTILINE)
_JSON_TEXT: Final = re.compile(_JSON_START.pattern.decode(), re.MULTILINE)
_NO_TEXT: Final = re.compile(rb"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]")
"""Bytes that no secret has: where they are, the mask of a seam ends."""


def redact(text: str) -> str:
    """Return the text with every secret in it as `***`. Redacting twice changes nothing more."""
    if not has_hint(text):
        return text
    if "-----BEGIN" not in text and not _JSON_TEXT.search(text):
        return redact_lines(text)
    if "\n" in text and text.lstrip()[:1] in {"{", "["} and is_json(text):
        return redact_json(text, redact)
    redactor = Redactor()
    data = text.encode("utf-8", "surrogatepass")
    masked = redactor.feed(data) + redactor.finish()
    return text if masked == data else masked.decode("utf-8", "surrogatepass")


def redact_arguments(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return a program's arguments, redacted; a secret may be known by the one before it."""
    text = json.dumps(arguments)
    masked = redact(text)
    return arguments if masked == text else tuple(json.loads(masked))


class Redactor:
    """Redacts one stream. `inside` is all it takes to go on from a line end."""

    def __init__(self, known: KnownSecrets = NOTHING_KNOWN, *, inside: int = 0) -> None:
        self.inside = inside
        """How many bytes more may belong to the PEM block that is open; 0 outside of one."""
        self._known = known
        self._line_open = False

    def feed(self, data: bytes) -> bytes:
        """Return whole lines, redacted; the last one of all may lack its line end."""
        data = self._known.mask(data)
        parts: list[bytes] = []
        done = self._leave_block(data, 0, parts) if self.inside else 0
        for start, end in lines_with_hints(data):
            at = max(start, done)
            if at >= end:
                continue
            parts.append(data[done:at])
            done = self._dirty(data, at, end, parts)
        if not parts and not done:
            return data
        parts.append(data[done:])
        return b"".join(parts)

    def piece(self, data: bytes, *, begins: bool) -> bytes:
        """Return a piece of one line, redacted, without what is near its cuts."""
        self.inside = 0
        data = self._known.mask(data)
        ends = data.endswith(b"\n")
        start = 0 if begins else _first_break(data)
        end = len(data) if ends else max(start, _last_break(data))
        middle = _redacted(data[start:end])
        return (_MASK if start else b"") + middle + (_MASK if end < len(data) else b"")

    def finish(self) -> bytes:
        """Return what was held back: the line end after a block whose END never came."""
        held = self.inside > 0 and not self._line_open
        self.inside = 0
        return b"\n" if held else b""

    def _dirty(self, data: bytes, at: int, end: int, parts: list[bytes]) -> int:
        """Redact lines from `at` to `end`, and the block that they begin; return where it stops."""
        json_at = block_at = -1
        while at < end:
            if json_at < at:
                json_at = _start(_JSON_START.search(data, at, end), end)
            if block_at < at:
                block_at = _start(BEGIN.search(data, at, end), end)
            line = data.rfind(b"\n", at, block_at) + 1 or at
            stop = min(json_at, line if block_at < end else end)
            if stop > at:
                parts.append(_redacted(data[at:stop]))
                at = stop
            elif json_at == at:
                at = self._json_line(data, at, parts)
                json_at = -1
            else:
                at = self._block_line(data, at, parts)
        return at

    def _json_line(self, data: bytes, at: int, parts: list[bytes]) -> int:
        """Redact a line that begins as JSON does, or the part of it before a PEM block."""
        end = data.find(b"\n", at) + 1 or len(data)
        text = data[at:end].decode("utf-8", "surrogateescape")
        if is_json(text):
            parts.append(redact_json(text, redact).encode("utf-8", "surrogateescape"))
            return end
        if BEGIN.search(data, at, end):
            return self._block_line(data, at, parts)
        parts.append(_redacted(data[at:end]))
        return end

    def _block_line(self, data: bytes, at: int, parts: list[bytes]) -> int:
        """Redact a line with a PEM block in it; return where the last block of it is over."""
        line_end = data.find(b"\n", at) + 1 or len(data)
        while begin := BEGIN.search(data, at, line_end):
            parts += (_redacted(data[at : begin.start()]), _MASK)
            at = self._enter_block(data, begin.end(), line_end, parts)
            if at >= line_end:
                return at
        parts.append(_redacted(data[at:line_end]))
        return line_end

    def _enter_block(self, data: bytes, at: int, line_end: int, parts: list[bytes]) -> int:
        end, over = end_in_line(data, at, line_end)
        if over:
            return end
        self.inside = LONGEST
        self._line_open = not data.endswith(b"\n", at, line_end)
        return self._leave_block(data, line_end, parts)

    def _leave_block(self, data: bytes, at: int, parts: list[bytes]) -> int:
        """Skip the rest of the open block; return where it is over, or the data is."""
        end, self.inside, ended = end_in_lines(data, at, self.inside)
        if end > at:
            self._line_open = not data.endswith(b"\n", at, end)
        if not self.inside and not ended:
            parts.append(b"\n")
        return end


def _start(found: re.Match[bytes] | None, otherwise: int) -> int:
    return found.start() if found else otherwise


def _redacted(lines: bytes) -> bytes:
    text = lines.decode("utf-8", "surrogateescape")
    return redact_lines(text).encode("utf-8", "surrogateescape")


def _first_break(data: bytes) -> int:
    """Return where the mask ends that begins at the start of the data."""
    found = _NO_TEXT.search(data, 0, SEAM)
    return found.start() if found else min(SEAM, len(data) - data.endswith(b"\n"))


def _last_break(data: bytes) -> int:
    """Return where the mask begins that ends at the end of the data."""
    start = max(0, len(data) - SEAM)
    last = start
    for found in _NO_TEXT.finditer(data, start):
        last = found.end()
    return last
