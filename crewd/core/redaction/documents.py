"""The rules for JSON text: what was JSON stays JSON, and keeps its layout.

Strings are read as what they mean, so that a header, a key block or more JSON in one is found as
it would be in a file of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from crewd.core.redaction.hints import has_hint
from crewd.core.redaction.keys import is_secret_key
from crewd.core.redaction.spans import MASK
from crewd.core.redaction.values import says_nothing

_STRING_TEXT: Final = r'"((?:[^"\\\n]++|\\.)*+)"'
_JSON: Final = re.compile(
    rf"(?:[\s{{}}\[\],:]++|{_STRING_TEXT}|-?\d[\d.eE+-]*+|true|false|null)++", re.ASCII
)
_STRING: Final = re.compile(rf"{_STRING_TEXT}(\s*+:\s*+)?", re.ASCII)
_NUMBER: Final = re.compile(r"-?\d[\d.eE+-]*+", re.ASCII)
_BRACKET: Final = re.compile(rf"{_STRING_TEXT}|[{{}}\[\]]", re.ASCII)
_OPENING: Final = frozenset("{[")
_SCHEMA: Final = re.compile(
    r"\{(?=[^{}]*?\"(?:type\"\s*+:\s*+\"(?:string|object|array|integer|number|boolean|null)|\$ref)\")"
    r"[^{}]*+\}"
    r"|\{\s*+\"type\"\s*+:\s*+\"(?:object|array)\"|\{\s*+\}|\[\s*+\]"
    r"|\{(?=[^{}]*?\"(?:in|scheme|flows?|openIdConnectUrl)\")"
    r"[^{}]*?\"type\"\s*+:\s*+\"(?:apiKey|http|oauth2|openIdConnect)\""
)
"""What says of what kind a value is, as schemas and descriptions of interfaces do."""
_EXAMPLE: Final = re.compile(r"\"(?:default|examples?|const|enum)\"")
_LONGEST_SCHEMA: Final = 1000
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_SHORTEST: Final = 5
"""Shorter strings hold no secret."""


def is_json(text: str) -> bool:
    """Whether it is made of the words of JSON only: a document, or some lines of one."""
    return _JSON.fullmatch(text) is not None


def redact_json(text: str, redact: Callable[[str], str], *, keys: bool = True) -> str:
    """Mask the values of secret keys, and what `redact` finds in any other string.

    Without `keys` no name makes a value secret.
    """
    parts: list[str] = []
    done = at = 0
    option_end = -1
    closings: dict[int, int] | None = None
    while found := _STRING.search(text, at):
        content, colon = found.groups()
        start, at = found.span()
        new = None
        if colon and (not keys or _is_plain_key(content)):
            masked = content if keys else _in_string(content, redact)
            new = None if masked is content else f'"{masked}"{colon}'
        elif colon and is_secret_key(_meaning(content) or content):
            if closings is None and text[at : at + 1] in _OPENING:
                closings = _closings(text)
            start, at = at, _value_end(text, at, closings or {}, content)
            new = f'"{MASK}"' if at > start else None
        elif keys and start > option_end >= 0 and _is_argument(text, option_end, start, content):
            new = f'"{MASK}"{colon or ""}'
        elif (masked := _in_string(content, redact)) is not content:
            new = f'"{masked}"{colon or ""}'
        option_end = at if content[:1] == "-" and _takes_secret(content, text) else -1
        if new is not None:
            parts += (text[done:start], new)
            done = at
    parts.append(text[done:])
    return "".join(parts)


@lru_cache(maxsize=4096)
def _is_plain_key(name: str) -> bool:
    """Whether it is no secret and names none. Most keys are written again in every line."""
    return not has_hint(name) and not is_secret_key(_meaning(name) or name)


def _takes_secret(option: str, text: str) -> bool:
    """Whether the string after this one is a secret, as in a list of a program's arguments."""
    return is_secret_key(option) or (option in {"-u", "--user"} and '"curl"' in text)


def _is_argument(text: str, option_end: int, start: int, content: str) -> bool:
    """Whether the string comes next after an option, and is more than a reference."""
    return text[option_end:start].strip() == "," and not says_nothing(content, "")


def _value_end(text: str, at: int, closings: dict[int, int], name: str) -> int:
    """Return where the value ends that begins at `at`; `at` itself for one that says nothing."""
    if _is_harmless(text, at, name):
        return at
    found = _STRING.match(text, at)
    if found is not None:
        return found.end(1) + 1
    number = _NUMBER.match(text, at)
    if number is not None:
        return number.end()
    return closings.get(at, at)


def _is_harmless(text: str, at: int, name: str) -> bool:
    """Whether the value is a reference or a placeholder, or what says of which type it is."""
    found = _STRING.match(text, at)
    if found is not None:
        return says_nothing(_meaning(found[1]) or found[1], name)
    schema = _SCHEMA.match(text, at, at + _LONGEST_SCHEMA)
    return schema is not None and _EXAMPLE.search(schema[0]) is None


def _closings(text: str) -> dict[int, int]:
    """Return where each bracket that is closed ends."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for found in _BRACKET.finditer(text):
        if found[0] in {"{", "["}:
            opened.append(found.start())
        elif found[0] in {"}", "]"} and opened:
            ends[opened.pop()] = found.end()
    return ends


def _in_string(content: str, redact: Callable[[str], str]) -> str:
    """Return what is between the quotes, the same object when nothing in it is secret."""
    if len(content) < _SHORTEST:
        return content
    meaning = _meaning(content)
    if meaning is None:
        return content if redact(content) == content else MASK
    masked = redact(meaning)
    return content if masked == meaning else _written(masked, content)


def _meaning(content: str) -> str | None:
    """Return what the string says, None if it has escapes that JSON does not know."""
    if "\\" not in content:
        return content
    try:
        meaning: str = json.loads(f'"{content}"', strict=False)
    except ValueError:
        return None
    return meaning


def _written(meaning: str, before: str) -> str:
    """Return the meaning as it stands between quotes, in the manner of what was there before."""
    if before.isascii():
        return json.dumps(meaning)[1:-1]
    written = json.dumps(meaning, ensure_ascii=False)[1:-1]
    return _SURROGATE.sub(
        lambda found: found[0] if found[0] in before else f"\\u{ord(found[0]):04x}", written
    )
