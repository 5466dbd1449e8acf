"""The rules for one or more lines of text that is not JSON. No rule looks beyond a line end.

Each rule is one pass in linear time. What begins with the mask counts as masked, which makes the
passes idempotent.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum, auto
from functools import lru_cache
from typing import Final

from crewd.core.redact_keys import is_secret_key

MASK: Final = "***"

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
_BEARER: Final = re.compile(r"\b(bearer[ \t]++)[A-Za-z0-9._~+/=-]{8,}+", re.ASCII | re.IGNORECASE)
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
_ASSIGNS: Final = r"(?:\\*+[\"'`])?+\]?+[ \t]*+(?:===?|!==?|:=|=>|=|:(?!:))[ \t]*+"
_ASSIGNED: Final = re.compile(
    rf"(?:[\w.$-]++ (?=\w)|[\w.$-]++(?!{_ASSIGNS})|[^\w.$-]++)*+([\w.$-]++)({_ASSIGNS})", re.ASCII
)
"""To be matched where the last one ended: it skips, once, all that is no name with a value."""
_ANNOTATION: Final = re.compile(
    r"(?:Final\[|Optional\[)?(?:str|bytes|string|String|SecretStr|Any|Final)\]?"
    r"(?:[ \t]*+\|[ \t]*+None)?[ \t]*+=[ \t]*+(?=[^\s=])"
)
"""The type that a name is declared with before it gets its value."""
_SCHEME: Final = re.compile(
    r"(?:bearer|basic|token|digest|negotiate|apikey)[ \t]++(?=[^\s,;])", re.ASCII | re.IGNORECASE
)
_OPENER: Final = re.compile(r"[bBfFrRuU]{0,2}+(\\*+)([\"'`])")
_MAY_OPEN: Final = frozenset("\\\"'`bBfFrRuU")
_MAY_NAME: Final = frozenset("bBtTdDnNaA")
_RUN: Final = re.compile(r"\\*+[\"'`]|\n")
_BARE: Final = re.compile(
    r"(?:[^\s,;\"\\]++|\\[\\/]|\\u[0-9a-fA-F]{4}|\\(?![nrtbf\"'`u\\/\n]))++", re.ASCII
)
_LISTED: Final = re.compile(r"\[[^\]\n]*+\]")
_TO_LINE_END: Final = re.compile(r"(?:[^\r\n\\]++|\\(?!\\*+[nr\"]))++")
_NOTHING: Final = frozenset(
    {"null", "none", "nil", "undefined", "true", "false", "{", "(", "[", "|"}
)
_KEY_OF: Final = re.compile(
    r"(?:api|access|secret|private|encryption|signing)[ \t]\Z", re.IGNORECASE
)
_SOURCE: Final = re.compile(
    r".*\.(?:py|pyi|ts|tsx|js|jsx|mjs|go|rs|c|h|cc|cpp|hpp|java|kt|rb|php|cs|swift|sh|sql|md|rst"
    r"|txt|json|yaml|yml|toml|html|css|proto|log|cfg|ini|xml|lua|ex|vue)\Z",
    re.IGNORECASE | re.DOTALL,
)
_DIGITS: Final = re.compile(r"\d++(?![\w.-])", re.ASCII)


_NOWHERE: Final = (0, 0)


def redact_lines(text: str) -> str:
    """Mask what the rules find in lines of text."""
    folded = text.lower()
    if "-" in text:
        text = _each(_FLAG.search, text, _flag_value)
    if "=" in text or ":" in text:
        text = _each(_ASSIGNED.match, text, _assigned_value)
    for prefix, pattern in _BY_PREFIX:
        if prefix in text:
            text = pattern.sub(MASK, text)
    if "@" in text and "://" in text:
        text = _USERINFO.sub(rf"\1{MASK}", text)
    if "curl" in folded:
        text = _each(_CURL_USER.search, text, _curl_value)
    return _BEARER.sub(rf"\1{MASK}", text) if "bearer" in folded else text


def _each(
    find: Callable[[str, int], re.Match[str] | None],
    text: str,
    value: Callable[[str, re.Match[str]], tuple[int, int]],
) -> str:
    """Mask the value that belongs to each match, and go on behind it."""
    parts: list[str] = []
    done = at = 0
    while match := find(text, at):
        start, end = value(text, match)
        at = max(end, match.end())
        if start < end:
            parts += (text[done:start], MASK)
            done = end
    if not parts:
        return text
    parts.append(text[done:])
    return "".join(parts)


def _flag_value(text: str, match: re.Match[str]) -> tuple[int, int]:
    return _value_at(text, match.end()) if is_secret_key(match[1]) else _NOWHERE


def _assigned_value(text: str, match: re.Match[str]) -> tuple[int, int]:
    kind = _kind_of(match[1])
    if kind is _Kind.PLAIN:
        return _NOWHERE
    if kind is _Kind.HEADER:
        return _header_value(text, match)
    end = match.end()
    if kind is _Kind.FILE and _DIGITS.match(text, end):
        return _NOWHERE
    if kind is _Kind.FOLDER and text[end : end + 1] in {"/", '"'}:
        return _NOWHERE
    if kind is _Kind.KEY and not _KEY_OF.search(text, max(0, match.start(1) - 16), match.start(1)):
        return _NOWHERE
    if match[2].rstrip() == ":" and (annotation := _ANNOTATION.match(text, end)):
        end = annotation.end()
    return _value_at(text, end)


class _Kind(Enum):
    """What a name is before a value."""

    PLAIN = auto()
    SECRET = auto()
    HEADER = auto()
    """Its value goes to the end of the line."""
    FILE = auto()
    """Named for a secret, but what follows may be the number of a line."""
    FOLDER = auto()
    """PWD: a folder, to a shell; a password, to a driver of a database."""
    KEY = auto()
    """The second word of `API key`, or any key."""


@lru_cache(maxsize=4096)
def _kind_of(name: str) -> _Kind:
    lower = name.lower()
    if lower.endswith(("authorization", "cookie")):
        return _Kind.HEADER
    if is_secret_key(name):
        return _Kind.FILE if _SOURCE.match(name) else _Kind.SECRET
    if name in {"PWD", "OLDPWD"}:
        return _Kind.FOLDER
    return _Kind.KEY if lower == "key" else _Kind.PLAIN


def _header_value(text: str, match: re.Match[str]) -> tuple[int, int]:
    """Return the rest of the line, or of the quotes the header stands in."""
    start = match.end()
    if _OPENER.match(text, start):
        return _value_at(text, start)
    scheme = _SCHEME.match(text, start)
    if scheme is not None and scheme[0][:6].lower() == "bearer":
        return _value_at(text, start)
    before = text[match.start(1) - 1] if match.start(1) else ""
    found = _TO_LINE_END.match(text, start)
    end = found.end() if found else start
    if before and before in "\"'`":
        closed = text.find(before, start, end)
        end = end if closed < 0 else closed
    return _masked(text, start, len(text[start:end].rstrip(" \t\r")) + start)


def _value_at(text: str, at: int) -> tuple[int, int]:
    first = text[at : at + 1]
    if first in _MAY_OPEN and (opener := _OPENER.match(text, at)):
        return _quoted(text, opener)
    if first in _MAY_NAME and (scheme := _SCHEME.match(text, at)):
        at = scheme.end()
    found = (first == "[" and _LISTED.match(text, at)) or _BARE.match(text, at)
    if found is None or found[0].lower().partition(MASK)[0] in _NOTHING:
        return _NOWHERE
    end = found.end()
    if text[end - 1] in "(=[" and (opener := _OPENER.match(text, end)):
        end = max(end, _quoted(text, opener)[1])
    return _masked(text, at, end)


def _quoted(text: str, opener: re.Match[str]) -> tuple[int, int]:
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
            return _masked(text, start, run.start())
    return _masked(text, start, len(text))


def _curl_value(text: str, match: re.Match[str]) -> tuple[int, int]:
    line = text.rfind("\n", 0, match.start()) + 1
    reach = max(line, match.start() - _CURL_REACH)
    if text.rfind("curl", reach, match.start()) < 0:
        return _NOWHERE
    return _masked(text, match.end(1), match.end())


def _masked(text: str, start: int, end: int) -> tuple[int, int]:
    if text.startswith(MASK, start):
        return _NOWHERE
    return start, end
