"""Private keys in PEM form: the one secret that has several lines, and may come without its end."""

from __future__ import annotations

import re
from typing import Final

BEGIN: Final = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END: Final = re.compile(rb"-----END [A-Z0-9 ]{0,52}-----")
LONGEST: Final = 16 * 1024
"""What is masked after a beginning at most. The largest keys in use have half of it."""
_REST: Final = re.compile(rb"(?:[A-Za-z0-9+/= \t\r:,.-]|\\+[nrt])*+")
"""What may follow a beginning in its own line."""
_BODY: Final = re.compile(
    rb"[ \t]*+"
    rb"|[ \t>+|#-]*+(?:\d++[ \t:|]++)?(?:[A-Za-z0-9+/]++={0,2}|\\n)*+[ \t\\\"',;]*+"
    rb"|(?:.{0,120}[^A-Za-z0-9+/=])?[A-Za-z0-9+/]{40,}+={0,2}[ \t\\\"',;]*+"
    rb"|[ \t]*+(?:Proc-Type|DEK-Info|Comment|Version|Hash|Charset):.*+",
    re.DOTALL,
)
"""A line of a key: base64, alone or after what numbered it, and the headers such blocks have."""


def end_in_line(data: bytes, at: int, line_end: int) -> tuple[int, bool]:
    """Return how far the block that began before `at` goes in its line, and if it ends there."""
    found = _END.search(data, at, min(line_end, at + LONGEST))
    if found is not None:
        return found.end(), True
    rest = _REST.match(data, at, min(line_end, at + LONGEST))
    end = rest.end() if rest else at
    return end, data[end:line_end].strip(b"\r\n") != b""


def end_in_lines(data: bytes, at: int, budget: int) -> tuple[int, int, bool]:
    """Return how far the block goes from a line start, what of its budget is left, and its END.

    Nothing is left when it is over; it may be without an END.
    """
    while at < len(data):
        line_end = data.find(b"\n", at) + 1 or len(data)
        if line_end - at > budget:
            return at, 0, False
        found = _END.search(data, at, line_end)
        if found is not None:
            return found.end(), 0, True
        if _BODY.fullmatch(data, at, line_end - data.endswith(b"\n", at, line_end)) is None:
            return at, 0, False
        budget -= line_end - at
        at = line_end
    return at, budget, False
