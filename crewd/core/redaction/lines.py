"""The rules for one or more lines of text that is not JSON. No rule looks beyond a line end.

Each rule is one pass in linear time. What begins with the mask counts as masked, which makes the
passes idempotent.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

from crewd.core.redaction.keys import is_secret_key
from crewd.core.redaction.pairs import ASSIGNED, Pairs
from crewd.core.redaction.spans import (
    MASK,
    NOWHERE,
    OPENER,
    Span,
    bare,
    masked,
    past_scheme,
    quoted,
)
from crewd.core.redaction.values import refers, says_nothing

_PREFIXED: Final = (
    ("gh", r"gh[pousr]_[A-Za-z0-9]{36,}+"),
    ("github_pat_", r"github_pat_[A-Za-z0-9]{16}\w*+"),
    ("glpat-", r"glpat-[\w-]{20,}+"),
    ("npm_", r"npm_[A-Za-z0-9]{36,}+"),
    ("crewt_", r"crewt_[\w-]{40,}+"),
    ("xox", r"xox[baprs]-[A-Za-z0-9-]{10,}+"),
    ("xapp-", r"xapp-[A-Za-z0-9-]{10,}+"),
    ("AIza", r"AIza[\w-]{35,}+"),
    ("k_live_", r"[sr]k_live_[A-Za-z0-9]{16,}+"),
    ("k_test_", r"[sr]k_test_[A-Za-z0-9]{16,}+"),
    ("sk-", r"sk-{begins}[\w-]{20,}+"),
    ("hf_", r"hf_{begins}[A-Za-z0-9]{30,}+"),
    ("AKIA", r"AKIA{begins}[A-Z0-9]{16,}+"),
    ("ASIA", r"ASIA{begins}[A-Z0-9]{16,}+"),
    ("eyJ", r"eyJ(?<![_-]eyJ){begins}[\w-]{5,}+(?:\.[\w-]*+){2,4}"),
)
"""What secrets are that are known by how they begin. Some must begin a word, or what only looks
like the middle of one: the end of an escape."""


def _prefixed(prefix: str, pattern: str) -> re.Pattern[str]:
    """Return the pattern, to the end of the word: what is left must not look like a beginning."""
    begins = rf"(?:(?<![A-Za-z0-9]{prefix})|(?<=%[0-9A-Fa-f]{{2}}{prefix})|(?<=\\[nrt]{prefix}))"
    return re.compile(pattern.replace("{begins}", begins) + r"[\w-]*+", re.ASCII)


_BY_PREFIX: Final = tuple((prefix, _prefixed(prefix, text)) for prefix, text in _PREFIXED)

_USERINFO: Final = re.compile(
    r"(://[^\s/?#:@\"'<>\\]{0,256}+:)(?!\*\*\*)[^\s/?#\"'<>\\]+(?=@)", re.ASCII
)
_BEARER: Final = re.compile(
    r"\b(bearer[ \t]++)(?!(?:auth\w*|credentials?|certificates?|security|challenge)(?![\w~+/=-]))"
    r"[A-Za-z0-9._~+/=-]{8,}+",
    re.ASCII | re.IGNORECASE,
)
"""Not what is said of bearers."""
_CURL_USER: Final = re.compile(
    r"(?<![\w-])((?:-[a-zA-Z]{0,8}?u|--(?:proxy-)?user)(?:[ \t=]*+|\\*+[\"'],[ \t]*+)"
    r"(?P<quote>\\*+[\"'])?+(?!\d++:\d++(?!\w))[^\s:\"'\\]++:)"
    r"(?(quote)[^\"'\n\\]++|[^\s\"'\\]++)",
    re.ASCII,
)
_CURL_REACH: Final = 4096

_FLAG: Final = re.compile(
    r"-(?<![\w-]-)-?([A-Za-z][\w-]*+)(?:[ \t]++|\\*+[\"'][ \t]*+,[ \t]*+(?=\\*+[\"']))(?![-=:|])",
    re.ASCII,
)
_TALK: Final = frozenset(
    [
        "a",
        "again",
        "also",
        "an",
        "and",
        "are",
        "argument",
        "as",
        "at",
        "be",
        "before",
        "but",
        "by",
        "can",
        "cannot",
        "could",
        "does",
        "flag",
        "flags",
        "for",
        "from",
        "has",
        "have",
        "if",
        "in",
        "instead",
        "is",
        "it",
        "may",
        "means",
        "must",
        "no",
        "not",
        "of",
        "on",
        "only",
        "option",
        "options",
        "or",
        "parameter",
        "requires",
        "should",
        "so",
        "takes",
        "than",
        "that",
        "the",
        "then",
        "there",
        "they",
        "to",
        "too",
        "was",
        "were",
        "what",
        "when",
        "where",
        "which",
        "will",
        "with",
        "without",
        "would",
    ]
)
"""What goes on after an option's name where it is spoken of."""
_METAVAR: Final = frozenset({"FILE", "ID", "KEY", "NAME", "PATH", "STRING", "TEXT", "VALUE", "VAR"})


def redact_lines(text: str) -> str:
    """Mask what the rules find in lines of text."""
    folded = text.lower()
    for prefix, pattern in _BY_PREFIX:
        if prefix in text:
            text = pattern.sub(MASK, text)
    if "@" in text and "://" in text:
        text = _USERINFO.sub(rf"\1{MASK}", text)
    if "curl" in folded:
        text = _each(_CURL_USER.search, text, partial(_curl_value, text))
    if "bearer" in folded:
        text = _BEARER.sub(rf"\1{MASK}", text)
    if "-" in text:
        text = _each(_FLAG.search, text, partial(_flag_value, text))
    if "=" in text or ":" in text:
        text = _each(ASSIGNED.match, text, Pairs(text).value)
    return text


def _each(
    find: Callable[[str, int], re.Match[str] | None],
    text: str,
    value: Callable[[re.Match[str]], Span],
) -> str:
    """Mask the value that belongs to each match, and go on behind it."""
    parts: list[str] = []
    done = at = 0
    while match := find(text, at):
        start, end = value(match)
        at = max(end, match.end())
        if start < end:
            parts += (text[done:start], MASK)
            done = end
    if not parts:
        return text
    parts.append(text[done:])
    return "".join(parts)


def _flag_value(text: str, match: re.Match[str]) -> Span:
    name = match[1]
    if not is_secret_key(name):
        return NOWHERE
    at = past_scheme(text, match.end())
    opener = OPENER.match(text, at)
    span = quoted(text, opener) if opener else bare(text, at)
    value = text[span.start : span.end]
    if says_nothing(value.partition(MASK)[0], name) or (opener and value.startswith("-")):
        return NOWHERE
    if opener is None and _is_talk(text, at, value):
        return NOWHERE
    return masked(text, span)


def _is_talk(text: str, at: int, value: str) -> bool:
    """Whether the option is only spoken of, or shown with what is to be put there."""
    return refers(text, at) or value.rstrip(".:") in _TALK or value in _METAVAR


def _curl_value(text: str, match: re.Match[str]) -> Span:
    line = text.rfind("\n", 0, match.start()) + 1
    reach = max(line, match.start() - _CURL_REACH)
    if text.rfind("curl", reach, match.start()) < 0 or refers(text, match.end(1)):
        return NOWHERE
    return masked(text, Span(match.end(1), match.end()))
