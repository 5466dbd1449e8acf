"""Whether the value of a name is a secret, in configuration, logs, code and prose.

The name alone does not tell: most of what agents write is code that handles secrets, not secrets.
A quoted literal and a value that is all there is after its name are masked in doubt; references,
types, expressions, and words that go on as prose are not. Only the value's own line is asked.

What is looked at and left is read again for what is in it, so that is never more than so much.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import lru_cache
from typing import Final, NamedTuple

from crewd.core.redaction import values
from crewd.core.redaction.keys import is_secret_key
from crewd.core.redaction.spans import (
    MASK,
    NOWHERE,
    OPENER,
    SCHEME,
    Span,
    bare,
    masked,
    past_scheme,
    quoted,
)
from crewd.core.redaction.surroundings import Surroundings

_ASSIGNS: Final = r"(?:\\*+[\"'`])?+\]?+[ \t]*+(?:===?|!==?|:=|=>|=|:(?!:))[ \t]*+"
ASSIGNED: Final = re.compile(
    rf"(?:[\w.$-]++ (?=\w)|[\w.$-]++(?!{_ASSIGNS})|[^\w.$-]++)*+([\w.$-]++)({_ASSIGNS})", re.ASCII
)
"""To be matched where the last one ended: it skips, once, all that is no name with a value."""
_ANNOTATION: Final = re.compile(
    r"(?:[A-Za-z_.]++(?:\[[\w.,\[\] |]{0,80}+)?)(?:[ \t]*+\|[ \t]*+[\w.\[\]]{1,80}+){0,4}"
    r"[ \t]*+=(?![=>])[ \t]*+(?=\S)",
    re.ASCII,
)
"""The type that a name is declared with before it gets its value."""
_TO_LINE_END: Final = re.compile(r"(?:[^\r\n\\]++|\\(?!\\*+[nr\"]))++")
_KEY_OF: Final = re.compile(
    r"(?:api|access|secret|private|encryption|signing)[ \t]\Z", re.IGNORECASE
)
_SURPRISE: Final = re.compile(
    r"(?:unexpected|expected|illegal|stray|not an?|no)[ \t]\Z", re.IGNORECASE
)
_SOURCE: Final = re.compile(
    r".*\.(?:py|pyi|ts|tsx|js|jsx|mjs|go|rs|c|h|cc|cpp|hpp|java|kt|rb|php|cs|swift|sh|sql|md|rst"
    r"|txt|json|yaml|yml|toml|html|css|proto|log|cfg|ini|xml|lua|ex|vue)\Z",
    re.IGNORECASE | re.DOTALL,
)
_DIGITS: Final = re.compile(r"\d++(?![\w.-])", re.ASCII)
_COMPARES: Final = frozenset({"==", "===", "!=", "!=="})
_NEXT_PAIR: Final = re.compile(r"[,;&]?[ \t]++[\w.$-]{1,80}+[\"'`]?[ \t]?[=:]", re.ASCII)
_NEXT_WORD: Final = re.compile(r"[,;.:!?]?[ \t]++(?!(?:#|//|--|/\*|;)[ \t]|[-+|&>\\)\]}]|\Z)")
_ENDS_VALUE: Final = re.compile(r"[ \t]*+[,)}\];]")
_ENDS_ARGUMENT: Final = re.compile(r"[ \t]*+[,)]")
_ENDS_FIELD: Final = re.compile(r"[ \t]*+(?:,[ \t]*+(?:(?:#|//).*+)?$|\{)|;", re.MULTILINE)
_OPERATOR: Final = re.compile(r"[ \t]++(?:\|\||&&|\?\??|[+*|]|(?:or|if|is)\b)[ \t]")
_TYPE_GOES_ON: Final = re.compile(r"[ \t]*+[,)\]}|{=;\[]")
_LITERAL_CALL: Final = re.compile(
    r".{0,80}(?:Secret\w*|Some|String::from|new String|\[\]byte|bytes|str|SecretString::new)\(",
    re.DOTALL,
)
_FALLBACK: Final = re.compile(
    r"(?:[^\n;,={}:]{0,120}?(?:\|\||\?[?:]|\bor\b|\belse\b)"
    r"|[\w.]{0,60}(?:getenv|env\.get|environ\.get|\.get|OrDefault|setdefault)"
    r"\([\"'][^\"'\n]{0,80}[\"'][ \t]*,)[ \t]*(?=[\"'])",
    re.ASCII,
)
_WRAPPING: Final = re.compile(r"(?:\[\]string)?[{\[(]?")
_WORD: Final = re.compile(r"[A-Za-z']++[.,:]?")
_PROSE: Final = 3
"""So many words after the name of a header are a sentence."""


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


class _Pair(NamedTuple):
    """A name, and where its value begins."""

    name: str
    start: int
    """Of the name."""
    sign: str
    spaced: bool
    is_element: bool
    """Whether it stands in brackets, as the index of what gets the value."""
    at: int
    """Where the value begins."""


class Pairs:
    """Finds the secret values of the names in some lines, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._around = Surroundings(text)

    def value(self, match: re.Match[str]) -> Span:
        """Return where the value of the name is that was found, if it is a secret."""
        kind = self._kind(match)
        if kind is _Kind.PLAIN:
            return NOWHERE
        self._around.move(match.end())
        pair = _pair_of(match)
        if kind is _Kind.HEADER and pair.sign == ":":
            span = self._header(pair, match)
        else:
            span = self._value(self._past_annotation(pair))
        if span.start < span.end:
            self._around.move(span.start)
            self._around.skip(span.end)
        return span

    def _kind(self, match: re.Match[str]) -> _Kind:
        text, start, end = self._text, match.start(1), match.end()
        kind = _kind_of(match[1])
        if kind is _Kind.FILE and _DIGITS.match(text, end):
            return _Kind.PLAIN
        if kind is _Kind.FOLDER and text[end : end + 1] in {"/", '"'}:
            return _Kind.PLAIN
        if kind is _Kind.KEY and not _KEY_OF.search(text, max(0, start - 16), start):
            return _Kind.PLAIN
        return kind

    def _past_annotation(self, pair: _Pair) -> _Pair:
        if pair.sign == ":" and (found := _ANNOTATION.match(self._text, pair.at)):
            return pair._replace(sign="=", spaced=True, at=found.end())
        return pair

    def _value(self, pair: _Pair) -> Span:
        at = past_scheme(self._text, pair.at)
        opener = OPENER.match(self._text, at + self._text.startswith("(", at))
        return self._literal(opener, pair) if opener else self._bare(at, pair)

    def _literal(self, opener: re.Match[str], pair: _Pair) -> Span:
        """Return what is between the quotes, unless it is plainly no secret."""
        text, quote = self._text, opener[2]
        following = text[opener.end() : opener.end() + 1]
        closes = opener.start() == pair.at and not (following.isalnum() or following in "\"'`")
        if closes and self._around.is_open(quote):
            return NOWHERE
        span = quoted(text, opener)
        content = text[span.start : span.end]
        closed = text.startswith(("\\", quote), span.end) or not content
        if closed and len(content) <= values.LONGEST and self._is_harmless(opener, content, pair):
            return NOWHERE
        return masked(text, span)

    def _is_harmless(self, opener: re.Match[str], content: str, pair: _Pair) -> bool:
        """Whether nothing is lost by what is in quotes; what was masked in it is not looked at."""
        content = content.replace(MASK, "")
        if _says_no_more(content, pair) or (opener[2] == "`" and _is_spoken_of(content)):
            return True
        return opener[0][0] in {"r", "R"} and values.is_pattern(content)

    def _bare(self, at: int, pair: _Pair) -> Span:
        text = self._text
        if pair.sign in _COMPARES or pair.sign == "=>" or values.refers(text, at):
            return NOWHERE
        span = bare(text, at)
        value = text[span.start : span.end]
        if MASK in value:
            listed = value[0] == "[" and value[-1] == "]"
            head = value.replace(MASK, "") if listed else value.partition(MASK)[0]
            value = head if listed else head[: bare(head, 0).end]
        if len(value) <= values.LONGEST:
            if not value or values.says_nothing(value, pair.name):
                return NOWHERE
            if values.is_code(value):
                return self._in_code(span, value, pair)
            if not self._is_secret(span.end, value, pair):
                return self._fallback(span.start, pair)
        return masked(text, span)

    def _in_code(self, span: Span, value: str, pair: _Pair) -> Span:
        """Return the literal that the code wraps or falls back to."""
        text = self._text
        opener = OPENER.match(text, span.end) if value[-1:] in {"(", "=", "["} else None
        if opener is None:
            return self._fallback(span.start, pair)
        literal = quoted(text, opener)
        content = text[literal.start : literal.end]
        wraps = _LITERAL_CALL.fullmatch(value) or value[-1:] == "=" or _is_made(value)
        if wraps and (values.is_strong(content) or _LITERAL_CALL.fullmatch(value)):
            return NOWHERE if _says_no_more(content, pair) else masked(text, literal)
        return self._fallback(span.start, pair)

    def _fallback(self, at: int, pair: _Pair) -> Span:
        found = _FALLBACK.match(self._text, at)
        opener = OPENER.match(self._text, found.end()) if found else None
        if opener is None:
            return NOWHERE
        literal = quoted(self._text, opener)
        content = self._text[literal.start : literal.end]
        if not values.is_strong(content) or _says_no_more(content, pair):
            return NOWHERE
        return masked(self._text, literal)

    def _is_secret(self, end: int, value: str, pair: _Pair) -> bool:
        """Whether a value that stands without quotes is data, and neither code nor prose."""
        if value[0] == "[" and value[-1] == "]":
            return _lists_secrets(value, pair)
        identifier = values.is_identifier(value)
        if identifier and self._is_operand(end, value, pair):
            return False
        code = identifier and self._reads_as_code(end, pair)
        if values.is_strong(value):
            return not (code and self._around.declares and pair.sign == "=" and pair.spaced)
        if code:
            return False
        return self._is_set(end, value, pair) if pair.sign == ":" else self._gets(end, value, pair)

    def _is_operand(self, end: int, value: str, pair: _Pair) -> bool:
        """Whether it is part of an expression, or is called so that it must be a variable."""
        if _OPERATOR.match(self._text, end):
            return True
        named = values.is_variable_of(value, pair.name) and not value[0].isupper()
        if named and pair.sign == ":":
            return self._around.declares or _ENDS_VALUE.match(self._text, end) is not None
        return named and (pair.spaced or self._reads_as_code(end, pair))

    def _reads_as_code(self, end: int, pair: _Pair) -> bool:
        """Whether the line has signs of code around the name and its value."""
        around, text = self._around, self._text
        if pair.spaced and pair.sign == "=":
            own = pair.name.startswith(("_", "self.", "this.", "cls."))
            target = pair.is_element or text.endswith(", ", 0, pair.start)
            if own or target or around.declares or around.is_indented(pair.start):
                return True
        if around.in_parentheses and _ENDS_ARGUMENT.match(text, end):
            return True
        found = _ENDS_FIELD.match(text, end)
        if found is None:
            return around.declares and pair.sign == ":"
        return found[0].strip()[:1] == "," or pair.spaced

    def _is_set(self, end: int, value: str, pair: _Pair) -> bool:
        """Whether what follows a colon is all that is said of the name."""
        text, start = self._text, pair.start
        if _NEXT_PAIR.match(text, end):
            return True
        if values.is_type(value, pair.name) or _NEXT_WORD.match(text, end):
            return False
        if values.may_be_type(value) and _TYPE_GOES_ON.match(text, end):
            return False
        if values.is_word(value) and pair.name == "auth" and not self._around.leads(start):
            return False
        return _SURPRISE.search(text, max(0, start - 16), start) is None

    def _gets(self, end: int, value: str, pair: _Pair) -> bool:
        """Whether what follows an equals sign is a value, and no expression begins there."""
        if not pair.spaced:
            return True
        text = self._text
        if _NEXT_WORD.match(text, end) and not _NEXT_PAIR.match(text, end):
            return False
        return not values.is_type(value, pair.name)

    def _header(self, pair: _Pair, match: re.Match[str]) -> Span:
        """Return the rest of the line, or of the quotes the header stands in."""
        text, start = self._text, pair.at
        wrapping = _WRAPPING.match(text, start)
        if opener := OPENER.match(text, wrapping.end() if wrapping else start):
            return self._literal(opener, pair)
        scheme = SCHEME.match(text, start)
        if scheme is not None and scheme[0][:6].lower() == "bearer":
            return self._bearer(scheme.end(), pair)
        before = text[match.start(1) - 1] if match.start(1) else ""
        rest = self._rest(start, before, start + values.LONGEST)
        if self._is_no_header(rest.partition(MASK)[0], pair):
            return NOWHERE
        rest = self._rest(start, before, len(text))
        return masked(text, Span(start, start + len(rest)))

    def _rest(self, start: int, before: str, limit: int) -> str:
        """Return the line from there on, or to the quote that was opened before the name."""
        found = _TO_LINE_END.match(self._text, start, limit)
        rest = found[0] if found else ""
        if before and before in "\"'`":
            rest = rest.partition(before)[0]
        return rest.rstrip(" \t\r")

    def _bearer(self, at: int, pair: _Pair) -> Span:
        if values.refers(self._text, at):
            return NOWHERE
        span = bare(self._text, at)
        value = self._text[span.start : span.end]
        if values.says_nothing(value, pair.name):
            return NOWHERE
        return masked(self._text, span)

    def _is_no_header(self, rest: str, pair: _Pair) -> bool:
        """Whether what stands where a header's value would is said about the header, or code."""
        first = rest.rstrip("\"'`,;.)]} \t")
        if rest[:1] == "#" or values.is_type(rest.partition(",")[0], pair.name):
            return True
        if values.says_nothing(first, pair.name) or values.is_type(first, pair.name):
            return True
        if values.is_code(first.lstrip("{[(").partition(" ")[0]):
            return True
        if values.is_identifier(first) and _ENDS_FIELD.search(rest):
            return True
        words = rest.split()[: _PROSE + 2]
        if len(words) < _PROSE:
            return len(words) > 1 and all(values.is_word(word) for word in words)
        return all(_WORD.fullmatch(word) for word in words[:_PROSE])


def _says_no_more(content: str, pair: _Pair) -> bool:
    """Whether what stands in quotes is no secret: it names the name, or others."""
    if values.says_nothing(content, pair.name):
        return True
    if pair.sign in _COMPARES:
        return not values.is_strong(content)
    return _is_label(pair) and values.is_name_like(content)


@lru_cache(maxsize=4096)
def _kind_of(name: str) -> _Kind:
    lower = name.lower()
    if lower.startswith("token."):
        return _kind_of(name[len("token.") :])
    if lower.endswith(("authorization", "cookie")):
        return _Kind.HEADER
    if is_secret_key(name):
        return _Kind.FILE if _SOURCE.match(name) else _Kind.SECRET
    if name in {"PWD", "OLDPWD"}:
        return _Kind.FOLDER
    return _Kind.KEY if lower == "key" else _Kind.PLAIN


def _pair_of(match: re.Match[str]) -> _Pair:
    around = match[2].lstrip("\\\"'`")
    signs = around.removeprefix("]")
    spaced = signs[:1] in {" ", "\t"}
    return _Pair(match[1], match.start(1), signs.strip(), spaced, around is not signs, match.end())


def _is_spoken_of(content: str) -> bool:
    """Whether what is in backticks is a command, a call, or another name of a secret."""
    return " " in content or is_secret_key(content) or values.is_code(content)


def _is_label(pair: _Pair) -> bool:
    """Whether the name is that of a constant for keys of a table: `LANG_KEY`, not `API_KEY`."""
    name = pair.name
    if not name.isupper() or not name.endswith(("_KEY", "_KEYS")) or not pair.spaced:
        return False
    return not name.endswith(("API_KEY", "SECRET_KEY", "ACCESS_KEY", "PRIVATE_KEY", "MASTER_KEY"))


def _is_made(value: str) -> bool:
    """Whether it calls what is named as classes are."""
    return value.rpartition(".")[2][:1].isupper()


def _lists_secrets(value: str, pair: _Pair) -> bool:
    """Whether a list has anything in it that stands in quotes, or that is odd."""
    items = [item for item in map(str.strip, value[1:-1].split(",")) if " " not in item]
    literals = [item.strip("\"'") for item in items if item[:1] in {'"', "'"}]
    return any(not _says_no_more(literal, pair) for literal in literals) or any(
        values.is_strong(item) for item in items
    )
