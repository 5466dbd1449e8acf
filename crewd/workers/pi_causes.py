"""What a failed call of a model comes to, read off the words that pi hands on.

The HTTP status counts first, then what the words say: a status is what it is, while words like
`timeout` stand in all kinds of sentences.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, cast

from crewd.core.words import Cause
from crewd.workers.text import cut

MESSAGE_BYTES: Final = 4 * 1024
_OVERLOADED: Final = 500
_STATUS: Final = re.compile(r"(?:HTTP |Error: |Error )?([45]\d\d)(?=$|[\s:,.(])")
_CAUSES: Final[Mapping[int, Cause]] = {
    401: Cause.AUTH,
    402: Cause.BILLING,
    403: Cause.AUTH,
    404: Cause.MODEL_UNKNOWN,
    408: Cause.TRANSIENT,
    409: Cause.TRANSIENT,
    413: Cause.CONTEXT_OVERFLOW,
    425: Cause.TRANSIENT,
    429: Cause.THROTTLED,
}
_QUOTA: Final = re.compile(
    r"insufficient_quota|quota exceeded|exceeded your current quota|usage ?limit|out of budget",
    re.IGNORECASE,
)
_WORDS: Final[Mapping[Cause, Sequence[str]]] = {
    Cause.CONTEXT_OVERFLOW: (
        r"context[ _](?:length|window|size)",
        r"(?:prompt|input) is too long",
        r"maximum prompt length",
        r"input token count",
        r"too many input tokens",
    ),
    Cause.BILLING: (r"credit balance", r"billing", r"payment required"),
    Cause.AUTH: (
        r"no api key",
        r"(?:invalid|incorrect|missing) (?:x-)?api[- ]key",
        r"\bauthentication",
        r"\bunauthori[sz]ed",
        r"token (?:has )?expired",
    ),
    Cause.MODEL_UNKNOWN: (
        r"no models? (?:selected|available)",
        r"model_not_found",
        r"model \S+ (?:was )?not found",
        r"model \S+ does not exist",
        r"unknown (?:model|provider)",
    ),
    Cause.THROTTLED: (r"rate.?limit", r"too many requests", r"throttl", r"overloaded"),
    Cause.TRANSIENT: (
        r"\bE(?:CONN(?:RESET|REFUSED|ABORTED)|TIMEDOUT|PIPE|NOTFOUND|AI_AGAIN|HOSTUNREACH)\b",
        r"socket hang up|fetch failed|terminated|other side closed|timed out",
        r"(?:connection|network) error",
        r"ended (?:without|before)",
        r"unavailable|internal server error|bad gateway",
    ),
}
"""In the order in which they count."""
_BY_WORDS: Final = tuple(
    (cause, re.compile("|".join(words), re.IGNORECASE)) for cause, words in _WORDS.items()
)
_PASSING: Final = frozenset({Cause.TRANSIENT, Cause.THROTTLED})


class Trouble(NamedTuple):
    cause: Cause
    message: str
    """The provider's own words."""
    retryable: bool


def trouble(words: str) -> Trouble:
    """Return what a provider's error means. One that nothing is known of may be tried again."""
    status, said = _parts(words)
    cause = _cause(status, words)
    message = f"{said} (HTTP {status})" if status else said
    retryable = cause in _PASSING or (cause is Cause.REPORTED and not status)
    return Trouble(cause, cut(message, MESSAGE_BYTES), retryable)


def _cause(status: int, words: str) -> Cause:
    if status >= _OVERLOADED:
        return Cause.TRANSIENT
    if status == 429 and _QUOTA.search(words):  # noqa: PLR2004 - too many requests
        return Cause.QUOTA
    if status in _CAUSES:
        return _CAUSES[status]
    found = (cause for cause, pattern in _BY_WORDS if pattern.search(words))
    cause = next(found, Cause.REPORTED)
    # A request that is refused for what it is meets the same refusal again.
    return Cause.REPORTED if status and cause in _PASSING else cause


def _parts(words: str) -> tuple[int, str]:
    """Split `NNN: {"message": "..."}` into the status and what the provider says."""
    plain = words.strip()
    found = _STATUS.match(plain)
    if found is None:
        return 0, plain or "the model's provider failed without a word"
    rest = plain[found.end() :].lstrip(" :")
    return int(found[1]), _message_in(rest) or rest or "no words"


def _message_in(text: str) -> str:
    if not text.startswith("{"):
        return ""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    for _ in range(2):
        if not isinstance(value, dict):
            return ""
        fields = cast("dict[str, object]", value)
        message = fields.get("message")
        if isinstance(message, str):
            return message
        value = fields.get("error")
    return ""
