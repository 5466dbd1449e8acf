"""Texts of others made fit to be shown: without escapes, and no longer than there is room."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

IMPORTANT_LINES: Final = 30
_LINE: Final = 400
"""Characters of a line that are looked at, and that an important one may show."""
_LOOSE: Final = 200
"""Characters that a cut may move to fall between two lines."""

# Each alternative ends at the next escape at the latest, so that the time is linear.
_ESCAPE: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])"
)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_WORDS: Final = (
    *("error", "fail", "exception", "fatal", "panic", "traceback", "assertion", "timed out"),
    *("segmentation fault", "core dumped", "out of memory"),
)
"""Looked for in whatever case, and apart from the rest because that is much faster."""
_SIGNS: Final = re.compile(
    r"Warning|ERR!|[\u2715-\u2718\u00d7]|^\s*not ok\b|^E {3}|^\s*(?:Expected|Received|left|right): "
    r"|[Ee]xit(?:ed)?(?: with)?(?: code| status)?:? [1-9]"
    r"|\.\w{1,8}:\d{1,9}:|(?<![\w.])[45]\d\d(?![\w.])|\b(?!SHA)[A-Z]{1,5}\d{3,5}\b"
)


def displayed(text: str) -> str:
    """Return the text without terminal escapes and control characters."""
    return _CONTROL.sub("", _ESCAPE.sub("", text))


def one_line(text: str, most: int = 200) -> str:
    """Return a name or title fit to stand in a line of ours."""
    line = " ".join(displayed(text).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def is_important(line: str) -> bool:
    """Say whether a line of a program's output looks like what went wrong."""
    seen = line[:_LINE]
    folded = seen.lower()
    return any(word in folded for word in _WORDS) or _SIGNS.search(seen) is not None


def important_lines(lines: Iterable[str], most: int = IMPORTANT_LINES) -> list[str]:
    found: list[str] = []
    for line in lines:
        if len(found) == most:
            break
        if is_important(line):
            found.append(line)
    return found


def shorten(text: str, most: int) -> str:
    """Return the text in at most so many characters, the words for what is missing included.

    Three quarters of the room go to the beginning and one to the end; up to 15 % of it to lines
    in between that look important.
    """
    if len(text) <= most:
        return text
    room = most - len(_gap(len(text), len(text), lines="\n"))
    if room <= 0:
        return text[: max(0, most)]
    ends = _Ends(text, room)
    lines = _between(ends.middle, room * 15 // 100)
    if lines:
        ends = _Ends(text, room - len(lines))
    return f"{ends.head}{_gap(len(ends.middle), len(text), lines=lines)}{ends.tail}"


class _Ends:
    """Where a text is cut so that its beginning and its end fill the room."""

    def __init__(self, text: str, room: int) -> None:
        first = room * 3 // 4
        last = len(text) - (room - first)
        line_end = text.rfind("\n", max(0, first - _LOOSE), first)
        line_start = text.find("\n", last, last + _LOOSE)
        first = first if line_end <= 0 else line_end
        last = last if line_start < 0 else line_start + 1
        self.head, self.middle, self.tail = text[:first], text[first:last], text[last:]


def _between(middle: str, room: int) -> str:
    """Return the important lines that fit, whole ones of those that the cut went through."""
    lines = ""
    inner = middle.split("\n")[1:-1]
    for line in important_lines(inner):
        if len(lines) + min(len(line), _LINE) + 1 > room:
            break
        lines += line[:_LINE] + "\n"
    return lines


def _gap(left_out: int, total: int, *, lines: str) -> str:
    gap = f"\n[... {left_out} of {total} characters left out"
    return f"{gap}; in them:\n{lines}...]\n" if lines else f"{gap} ...]\n"


def code_block(text: str, language: str = "") -> str:
    """Return the text as a code block that it cannot end."""
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{ticks}{language}\n{text}\n{ticks}"
