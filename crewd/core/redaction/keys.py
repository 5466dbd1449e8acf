"""Which names name a secret: `api_key` and `dbPassword` do, `max_tokens` and `sort_key` do not."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET: Final = frozenset(
    {"auth", "bearer", "jwt", "passwords", "pwd", "secrets", "credentials", "cookies"}
)
_SECRET_ENDINGS: Final = (
    "token", "secret", "password", "passwd", "passphrase", "credential", "authorization", "cookie",
    "apikey", "secretkey", "accesskey", "privatekey",
)  # fmt: skip
"""Also at the end of words that were written together: PGPASSWORD, authtoken."""
_OPENS: Final = frozenset(
    {"access", "account", "admin", "api", "app", "auth", "client", "crypt", "decryption", "deploy",
     "encryption", "host", "license", "master", "private", "secret", "service", "session", "shared",
     "signing", "ssh", "storage", "webhook"}
)  # fmt: skip
"""What makes a key one that opens something, unlike a sort key. In capitals most keys do."""
_SHUTS_NOTHING: Final = frozenset(
    {"cache", "default", "foreign", "hash", "hot", "group", "index", "map", "object", "partition",
     "primary", "public", "publishable", "row", "sort", "unique"}
)  # fmt: skip
_NOT_A_TOKEN: Final = frozenset(
    {"bos", "cls", "end", "eos", "first", "last", "mask", "max", "min", "next", "num", "pad",
     "page", "sep", "special", "start", "stop", "unk"}
)  # fmt: skip
"""Tokens of a language model or a parser, and places in a list."""
_ABOUT: Final = frozenset(
    {"algorithm", "algo", "budget", "button", "bytes", "callback", "chars", "class", "color",
     "count", "counts", "dir", "enabled", "encoding", "endpoint", "error", "expiration", "expires",
     "expiry", "field", "file", "filename", "fn", "format", "func", "function", "handler", "hint",
     "index", "invalid", "jar", "label", "len", "length", "library", "limit", "max", "method",
     "min", "missing", "mode", "name", "number", "parts", "path", "pattern", "policy", "position",
     "prompt", "provider", "providers", "rate", "regex", "required", "size", "source", "status",
     "stdin", "style", "ttl", "type", "types", "uri", "url", "usage", "version"}
)  # fmt: skip
"""A last word that makes it something about a secret: apiUrl, token_type, password_file."""
_LONGEST: Final = 256
"""No name is longer; what is, is data."""


def words_of(name: str) -> list[str]:
    """Return the words that a name was put together of."""
    return _WORDS.findall(name)


@lru_cache(maxsize=4096)
def is_secret_key(name: str) -> bool:
    """Whether a field, variable, header or option of that name holds a secret.

    What has been masked is no name any more, the shell's PWD is a directory, and what has a slash
    is a path or a package.
    """
    if len(name) > _LONGEST or "*" in name or "/" in name or name in {"PWD", "OLDPWD"}:
        return False
    words = [word.lower() for word in words_of(name)]
    if not words or words[-1] in _ABOUT:
        return False
    return any(_is_secret_word(word, words) for word in words) or _is_key(words, name)


def _is_secret_word(word: str, words: list[str]) -> bool:
    if word == "token":
        return _NOT_A_TOKEN.isdisjoint(words)
    if word == "pass":
        return len(words) > 1
    return word in _SECRET or word.endswith(_SECRET_ENDINGS)


def _is_key(words: list[str], name: str) -> bool:
    if "key" not in words and "keys" not in words:
        return False
    if not _SHUTS_NOTHING.isdisjoint(words) or words[-1] == "id":
        return False
    return not _OPENS.isdisjoint(words) or (name.isupper() and len(words) > 1)
