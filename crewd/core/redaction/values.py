"""What a value says of itself: a secret, a reference to one, a piece of code, or nothing."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from crewd.core.redaction.keys import is_secret_key, words_of
from crewd.core.redaction.spans import MASK, SCHEME

LONGEST: Final = 400
"""What is longer is data, whatever it looks like."""
_REFERENCE: Final = re.compile(
    r"\$\{\{[^{}\n]{0,200}+\}\}"
    r"|[$#]\{(?![^{}\n]{0,200}:?-[^{}\n])[^{}\n]{0,200}+\}"
    r"|\$\([^()\n]{0,200}+\)?|\$[A-Z_][A-Z0-9_]{0,60}+(?!\w)|\$[A-Za-z_]{1,60}+(?!\w)|\$\d(?![\w$])"
    r"|\{\{[^{}\n]{0,200}+\}\}"
    r"|(?<!\$)\{[\w.]{0,80}+(?:[(\[][^{}\n]{0,80}+)?(?:![rsa])?(?::[^{}\n\"']{0,20}+)?\}"
    r"|<[A-Za-z][\w .:|/-]{0,60}+>|%\([\w.]{1,60}+\)[sdr]"
    r"|%[-+#]?\d{0,2}[sdrqvixXwTtf](?!\w)|%[A-Z_]{2,60}+%"
    r"|\[[a-z][a-z _-]{1,30}+\]|\[[A-Z][A-Z_]{1,30}+\]|\.\.\.|…",
    re.ASCII,
)
"""What stands for a value that is somewhere else, as shells, templates and manuals write it."""
_PLACEHOLDER: Final = re.compile(
    r"your[-_ ](?:[a-z]{1,20}[-_ ]?){1,6}|(.)\1{2,}+|x{3,}+[-x]*+|[^A-Za-z0-9]*+\*{3,}+"
    r"|(?:access|api|auth|client|csrf|id|refresh|session)_(?:key|secret|token)"
    r"|redacted|hidden|masked|omitted|removed|elided|placeholder",
    re.IGNORECASE | re.ASCII,
)
_PLAIN: Final = re.compile(
    r"#[0-9A-Fa-f]{3,8}|[\^~]\d++(?:\.\d++)*+[\w.-]*+|[<>=]*+\d++\.\d++\.\d++"
)
"""A color, or a version."""
_PATH: Final = re.compile(r"(?:~|\.{1,2}|\$[A-Z]+)?(?:/[a-z_.-]{1,40}+){2,}+/?", re.ASCII)
_WORDS: Final = frozenset(
    [
        "null",
        "none",
        "nil",
        "undefined",
        "true",
        "false",
        "yes",
        "no",
        "on",
        "off",
        "{",
        "(",
        "[",
        "|",
        ">",
        "\\",
        "|-",
        ">-",
        "()",
        "[]",
        "{}",
        "required",
        "optional",
        "string",
        "str",
        "bytes",
        "bool",
        "boolean",
        "int",
        "integer",
        "number",
        "float",
        "double",
        "char",
        "text",
        "varchar",
        "uuid",
        "any",
        "object",
        "unknown",
        "never",
        "void",
        "byte",
        "u8",
        "auto",
        "dict",
        "list",
        "tuple",
        "set",
        "callable",
        "function",
        "await",
        "new",
        "self",
        "this",
        "return",
        "pass",
        "not",
        "lambda",
        "async",
        "typeof",
        "default",
        "empty",
        "missing",
        "invalid",
        "unset",
        "given",
        "found",
        "inherit",
        "read",
        "write",
        "basic",
        "bearer",
        "digest",
        "negotiate",
        "auth",
        "authentication",
        "authorization",
        "array",
        "string?",
        "str?",
        "[]byte",
        "string[]",
        "&str",
        "*string",
        "&[u8]",
        "str|none",
        "string|null",
    ]
)
"""Types, and words of languages, protocols and manuals, that say nothing of the value itself."""
_AUTH_METHODS: Final = frozenset(
    [
        "anonymous",
        "apikey",
        "basic",
        "bearer",
        "cert",
        "digest",
        "iam",
        "jwt",
        "kerberos",
        "ldap",
        "login",
        "mtls",
        "none",
        "ntlm",
        "oauth",
        "oauth2",
        "oidc",
        "password",
        "plain",
        "saml",
        "session",
        "sso",
        "tls",
        "token",
    ]
)
_TECHNICAL: Final = re.compile(
    r"(?:aes|argon|base|blake|ed|ecdsa|es|hmac|hs|http|int|ipv|latin|md|oauth|pbkdf|ps|python|rs"
    r"|rsa|sha|ssl|tls|uint|utf|varchar|web|x)[-_]?\d{1,4}[a-z]?(?:[-_./](?:\d{1,4}|[a-z]{1,8}))*+"
    r"|v?\d++(?:\.\d++)++|\d{1,6}(?:ms|s|m|h|d|px|kb|mb|gb|days?|bytes|chars|th|st|nd|rd)"
    r"|\d{1,2}-[a-z]++|[a-z]{2,10}[-#]{1,2}\d{1,6}|iso-?\d{4}(?:-\d{1,2})?|\d{4}-\d\d-\d\d(?:t.*)?",
    re.IGNORECASE | re.ASCII,
)
"""Words that have digits and are no more a secret than other words."""
_STRONG: Final = 6
_ODD: Final = frozenset("!#$%^&*~@")
_EMAIL: Final = re.compile(r"[\w.+-]++@[\w-]++(?:\.[\w-]++)++", re.ASCII)
_SHORT_SIGNS: Final = 4

_NAME: Final = r"[A-Za-z_]\w*+(?:(?:\.|::|->|\?\.|!\.)[A-Za-z_]\w*+)*+"
_CALL: Final = re.compile(
    rf"[!&*]?{_NAME}!?(?:<[^<>()\n]{{0,60}}>|\[[^\[\]()\n]{{0,60}}\])?\("
    r"(?![^()\n]{0,200}\)\w)",
    re.ASCII,
)
_INDEX: Final = re.compile(rf"{_NAME}\[(?:[\w.:*'\[\]()|-]*\][\w.\[\]()|?]*+)?", re.ASCII)
_GENERIC: Final = re.compile(
    r"(?:\w++\.)*+(?:dict|list|tuple|set|type|map|[A-Z][a-z]\w*+)[\[<][\w.\[\]<>|&'*-]*+", re.ASCII
)
_ACCESS: Final = re.compile(
    r"(?:self|this|cls|process|os|env|environ|config|cfg|conf|settings|options|opts|args|request"
    r"|req|ctx|context|var|vars|local|module|props|state|secrets|github|inputs|params|import)"
    r"\??\.[A-Za-z_][\w.?\[\]()'!]*+|[A-Za-z_]\w*+(?:(?:::|->|\?\.)[A-Za-z_]\w*+)++",
    re.ASCII,
)
_BUILT: Final = re.compile(rf"(?:\[[\d.]{{0,6}}\])*+[&*]?{_NAME}\{{.*+", re.ASCII)
_NUMBER: Final = re.compile(r"[-+]?\d{1,3}|0x[0-9a-fA-F]{1,4}|\d{1,3}\.\d{1,3}", re.ASCII)
_PATTERN: Final = re.compile(r"\\[wdsbWDSB]|\[\^|\[[A-Za-z]-[A-Za-z]|\(\?")
_MARKED: Final = re.compile(r"[!&*][A-Za-z_]++|[(|][\w.(&*!]*+[|)]?|!?[\[{(]++|[<>|+*/-]++=?")
_ARROW: Final = re.compile(r"~(?!\S)|[(\[]\w*+[)\]]=>.*+")
_NAME_LIKE: Final = re.compile(r"(?:[a-z]++|\{\w++\})(?:[-_./: ][a-z]++)*+|[A-Z]++(?:_[A-Z]++)++")
_IDENTIFIER: Final = re.compile(rf"{_NAME}!?", re.ASCII)
_TYPE: Final = re.compile(
    r"(?:[A-Za-z_]\w*+\.)++(?:[A-Z]+[a-z]+){2,}|(?:_?[a-z]\w*+\.)++[A-Z]\w*+"
    r"|(?:[A-Z]+[a-z]+)+(?<=[a-z])(?:Type|Config|Options|Params|Manager|Provider|Value|Field|Info"
    r"|Like|Str|String|Bytes|Model|Key|Context|Callback|Fn|Source|Factory|Store|Service|Client|Reason|Status|Code)"
    r"|(?:\w++\.)*+(?:Any|String|Str|Bytes|Buffer|Text|Final|Self|Bool|Int|Data|Uuid|UUID)",
    re.ASCII,
)
_CAMEL: Final = re.compile(r"_?(?:[A-Z]+[a-z]+)+")
_LETTERS: Final = re.compile(r"[a-z]{3,}+")


@lru_cache(maxsize=1024)
def says_nothing(value: str, name: str) -> bool:
    """Whether it is empty, a reference, a placeholder or the name itself: no secret anyhow."""
    value = value.strip()
    if len(value) > LONGEST:
        return False
    scheme = SCHEME.match(value)
    if scheme is not None:
        value = value[scheme.end() :]
    if value.lower() in _WORDS or _PLACEHOLDER.fullmatch(value) or _PLAIN.fullmatch(value):
        return True
    rest = _REFERENCE.sub("", value)
    if not any(sign.isalnum() for sign in rest):
        return rest != value or len(value) <= _SHORT_SIGNS or len(set(value)) == 1
    return _PATH.fullmatch(value) is not None or _is_name(value, name)


def _is_name(value: str, name: str) -> bool:
    """Whether it is what is called so, or that in capitals, as manuals write what is to be put."""
    if name.lower().endswith("auth") and value.lower() in _AUTH_METHODS:
        return True
    sign = value[:1]
    if sign in {":", "@", "$"} and value[1:].isidentifier() and _shares(value[1:], name):
        return True
    if not value.replace("-", "_").isidentifier() or _digits(value):
        return False
    words = {word.lower() for word in words_of(value)}
    if words and words <= {word.lower() for word in words_of(name)}:
        return True
    return value.isupper() and is_secret_key(value)


@lru_cache(maxsize=1024)
def is_strong(value: str) -> bool:
    """Whether it is too odd for a word of a text or of a program, apart from what is masked."""
    value = value.replace(MASK, "")
    if len(value) < _STRONG or not any(sign.isalpha() for sign in value):
        return False
    if _TECHNICAL.fullmatch(value) or _EMAIL.fullmatch(value):
        return False
    return _digits(value) or not _ODD.isdisjoint(value)


@lru_cache(maxsize=1024)
def is_code(value: str) -> bool:
    """Whether it can only be read as code: a call, an index, a type with parameters, a number."""
    if len(value) > LONGEST:
        return False
    return _CALL.match(value) is not None or any(
        pattern.fullmatch(value)
        for pattern in (_INDEX, _GENERIC, _ACCESS, _BUILT, _NUMBER, _MARKED, _ARROW)
    )


def is_pattern(value: str) -> bool:
    """Whether it is a regular expression."""
    return len(value) <= LONGEST and _PATTERN.search(value) is not None


def is_identifier(value: str) -> bool:
    """Whether a program may have a variable, or a field of one, of that name."""
    return len(value) <= LONGEST and _IDENTIFIER.fullmatch(value) is not None


def is_type(value: str, name: str) -> bool:
    """Whether it is written as types are, or is called as what it is the type of."""
    if len(value) > LONGEST or not is_identifier(value):
        return False
    if _TYPE.fullmatch(value):
        return not _digits(value)
    return value[:1].isupper() and _shares(value, name)


def may_be_type(value: str) -> bool:
    """Whether it would pass for a type where one is wanted."""
    return len(value) <= LONGEST and _CAMEL.fullmatch(value) is not None


def is_variable_of(value: str, name: str) -> bool:
    """Whether it is an identifier of several words, one of them from the name."""
    return is_identifier(value) and len(words_of(value)) > 1 and _shares(value, name)


def is_word(value: str) -> bool:
    """Whether it has small letters only."""
    return _LETTERS.fullmatch(value) is not None


def is_name_like(value: str) -> bool:
    """Whether it is made of words with signs between them, as the names of keys are."""
    return len(value) <= LONGEST and _NAME_LIKE.fullmatch(value) is not None


def refers(text: str, at: int) -> bool:
    """Whether a reference stands there, even one with blanks in it."""
    found = _REFERENCE.match(text, at)
    return found is not None and not text[found.end() : found.end() + 1].isalnum()


def _shares(value: str, name: str) -> bool:
    words = {word.lower().rstrip("s") for word in words_of(value)}
    return not words.isdisjoint(word.lower().rstrip("s") for word in words_of(name))


def _digits(value: str) -> bool:
    return any(sign.isdigit() for sign in value)
