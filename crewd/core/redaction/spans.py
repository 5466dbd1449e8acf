"""Where a value begins and ends in a line of text, whatever it is worth."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

MASK: Final = "***"
OPENER: Final = re.compile(r"[bBfFrRuU]{0,2}+(\\*+)([\"'`])")
SCHEME: Final = re.compile(
    r"(?:bearer|basic|token|digest|negotiate|apikey)[ \t]++(?=[^\s,;=|-])", re.ASCII | re.IGNORECASE
)
_MAY_NAME: Final = frozenset("bBtTdDnNaA")
_RUN: Final = re.compile(r"\\*+[\"'`]|\n")
_BARE: Final = re.compile(
    r"(?:[^\s,;\"\\]++|\\[\\/]|\\u[0-9a-fA-F]{4}|\\(?![nrtbf\"'`u\\/\n]))++", re.ASCII
)
_LISTED: Final = re.compile(r"\[[^\]\n]*+\]")
_CLOSERS: Final = {")": "(", "]": "[", "}": "{", "'": "'", "`": "`"}
_MOST_CLOSERS: Final = 4
_STOPS: Final = frozenset(":.?!")
"""What may follow a closing sign, as in `def login(token=None):`."""


class Span(NamedTuple):
    """A part of a text."""

    start: int
    end: int


NOWHERE: Final = Span(0, 0)


def past_scheme(text: str, at: int) -> int:
    """Return where the value itself begins, behind the scheme of a header."""
    if text[at : at + 1] in _MAY_NAME and (scheme := SCHEME.match(text, at)):
        return scheme.end()
    return at


def quoted(text: str, opener: re.Match[str]) -> Span:
    """Return what is between the quotes; without a closing one, the rest of the line.

    Within `n` backslashes and a quote, the same quote of an inner level has `2n + 1` of them.
    """
    start, quote, step = opener.end(), opener[2], 2 * (len(opener[1]) + 1)
    if text.startswith(quote * 2, start):
        start += 2
    at = start
    while run := _RUN.search(text, at):
        at = run.end()
        if run[0] == "\n" or (run[0][-1] == quote and len(run[0]) % step):
            return Span(start, run.start())
    return Span(start, len(text))


def bare(text: str, at: int) -> Span:
    """Return what has no quotes around it, without what closes something that began before it."""
    listed = _LISTED.match(text, at) if text.startswith("[", at) else None
    found = listed or _BARE.match(text, at)
    if found is None:
        return NOWHERE
    end = found.end()
    for _ in range(0 if listed else _MOST_CLOSERS):
        stop = end - (text[end - 1] in _STOPS)
        if stop > at + 1 and _closes(text, at, stop):
            end = stop - 1
    return Span(at, end)


def _closes(text: str, start: int, end: int) -> bool:
    """Whether the last sign closes what was open before the value."""
    opener = _CLOSERS.get(text[end - 1])
    return opener is not None and text.find(opener, start, end - 1) < 0


def masked(text: str, span: Span) -> Span:
    """Return the span, or nowhere for what is masked."""
    return NOWHERE if text.startswith(MASK, span.start) else span
