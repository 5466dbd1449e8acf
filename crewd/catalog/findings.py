"""Problems of one file, collected while it is read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from crewd.catalog.values import Problem, Severity

MOST = 100
"""The most problems of one file that are told."""
_SHOWN = 80


class Findings:
    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.failed = False
        """The file must be left out."""
        self._full = False

    def error(self, line: int, message: str, fix: str = "") -> None:
        # The first is always told: without it nobody would know why the file is left out.
        first, self.failed = not self.failed, True
        self._add(Problem(self.file, line, Severity.ERROR, message, fix), always=first)

    def warn(self, line: int, message: str, fix: str = "") -> None:
        self._add(Problem(self.file, line, Severity.WARNING, message, fix))

    def _add(self, problem: Problem, *, always: bool = False) -> None:
        if always or len(self.problems) < MOST:
            self.problems.append(problem)
        elif not self._full:
            self._full = True
            message = "more is wrong from here on"
            self.problems.append(Problem(self.file, problem.line, Severity.WARNING, message))


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return a question to show as the way out; empty when nothing resembles the word."""
    close = nearest(word, choices)
    return f"did you mean {close!r}?" if close else ""


def nearest(word: str, choices: Iterable[str]) -> str:
    close = difflib.get_close_matches(word[:_SHOWN], list(choices), n=1, cutoff=0.6)
    return close[0] if close else ""


def shown(text: str) -> str:
    """Quote something of a file so that any content fits into a message."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
