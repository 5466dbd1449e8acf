"""What is around a name and its value in their line, read once from left to right.

What was masked on the way counts as the mask does: as nothing. So a second reading sees the same.
"""

from __future__ import annotations

import re
from typing import Final

_QUOTES: Final = "\"'`"
_DECLARES: Final = re.compile(
    r"[ \t+-]*+(?:export[ \t]++)?(?:default[ \t]++)?(?:const|let|var|def|class|func|fn|pub|async"
    r"|public|private|protected|static|final|val|auto|interface|struct|type|#define)[ \t]"
)
_LEAD: Final = re.compile(r"[ \t]*+(?:[-+*>#/|$]{1,3}[ \t]*+)?[\"'`]?")
_LONGEST_LEAD: Final = 60


class Surroundings:
    """How a line stands at a place in it: which quotes and parentheses are open there."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 0
        self._quotes = dict.fromkeys(_QUOTES, 0)
        self._depth = 0
        self._declares: bool | None = None

    def move(self, at: int) -> None:
        """Go on to a later place."""
        text = self._text
        line = text.rfind("\n", self._at, at) + 1
        if line:
            self._line = self._at = line
            self._quotes = dict.fromkeys(_QUOTES, 0)
            self._depth = 0
            self._declares = None
        passed = text[self._at : at]
        for quote in _QUOTES:
            self._quotes[quote] += passed.count(quote)
        self._depth = max(0, self._depth + passed.count("(") - passed.count(")"))
        self._at = at

    def skip(self, end: int) -> None:
        """Pass over what is masked."""
        self._at = end

    @property
    def in_parentheses(self) -> bool:
        return self._depth > 0

    @property
    def declares(self) -> bool:
        """Whether the line begins as a declaration in some language."""
        if self._declares is None:
            self._declares = _DECLARES.match(self._text, self._line) is not None
        return self._declares

    def is_open(self, quote: str) -> bool:
        """Whether such a quote was opened before this place and not closed."""
        return self._quotes[quote] % 2 == 1

    def leads(self, start: int) -> bool:
        """Whether what begins at `start` is the first thing in its line."""
        if start - self._line > _LONGEST_LEAD:
            return False
        return _LEAD.fullmatch(self._text, self._line, start) is not None

    def is_indented(self, start: int) -> bool:
        """Whether it is the first thing in its line, and not at the line's start."""
        before = self._text[self._line : min(start, self._line + _LONGEST_LEAD)]
        return self.leads(start) and before.lstrip("+-")[:1] in {" ", "\t"}
