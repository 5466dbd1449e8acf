"""What a jsonl worker says on its way: one line, at most one report, warnings beside it."""

from __future__ import annotations

from typing import Final

from crewd.core.model import Usage
from crewd.core.reports import (
    Message,
    ProgressMade,
    ProviderTrouble,
    Report,
    SteerSeen,
    ToolBegan,
    ToolDone,
    Used,
    Warned,
)
from crewd.core.words import Cause
from crewd.workers.jsonl_values import (
    Fields,
    choice_in,
    flag_in,
    id_in,
    number_in,
    span_in,
    text_in,
)

_NAME_BYTES: Final = 256
_TEXT_BYTES: Final = 4 * 1024
_MESSAGE_BYTES: Final = 8 * 1024 * 1024
_TOKENS: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_MAX_TOKENS: Final = 10**12
_MAX_USD: Final = 10**6
_MICROS: Final = 1_000_000


def message(fields: Fields) -> list[Report]:
    text = text_in(fields, "text", _MESSAGE_BYTES)
    return [Message(text)] if text else []


def progress(fields: Fields) -> list[Report]:
    percent = number_in(fields, "percent")
    made = ProgressMade(
        text=text_in(fields, "text", _TEXT_BYTES),
        percent=None if percent is None else min(100.0, max(0.0, percent)),
        step=text_in(fields, "step", _NAME_BYTES),
    )
    return [] if made == ProgressMade() else [made]


def tool(fields: Fields) -> list[Report]:
    name = text_in(fields, "name", _NAME_BYTES)
    tool_id = id_in(fields) or name
    status = text_in(fields, "status", _NAME_BYTES).lower()
    detail = text_in(fields, "detail", _TEXT_BYTES)
    if not tool_id:
        return []
    if status == "started":
        return [ToolBegan(tool_id=tool_id, name=name, title=detail)]
    if status == "ended":
        is_error = flag_in(fields, "is_error", default=False)
        return [ToolDone(tool_id=tool_id, is_error=is_error, detail=detail)]
    return []


def usage(fields: Fields) -> list[Report]:
    """Read what was used. A report that names any tokens is one turn."""
    invalid: list[str] = []
    counts = {key: _amount(fields, key, _MAX_TOKENS, invalid) or 0.0 for key in _TOKENS}
    cost = _amount(fields, "cost_usd", _MAX_USD, invalid)
    used = Usage(
        input_tokens=int(counts["input_tokens"]),
        output_tokens=int(counts["output_tokens"]),
        cache_read_tokens=int(counts["cache_read_tokens"]),
        cache_write_tokens=int(counts["cache_write_tokens"]),
        turns=int(any(counts.values())),
        cost_micros=None if cost is None else round(cost * _MICROS),
    )
    reports: list[Report] = []
    if used != Usage():
        reports.append(Used(usage=used, model=text_in(fields, "model", _NAME_BYTES)))
    if invalid:
        names = ", ".join(invalid)
        reports.append(Warned("usage_invalid", f"usage without a valid {names} was reported"))
    return reports


def trouble(fields: Fields) -> list[Report]:
    return [
        ProviderTrouble(
            cause=choice_in(fields, "cause", Cause) or Cause.REPORTED,
            message=text_in(fields, "message", _TEXT_BYTES),
            retry_after=span_in(fields, "retry_after_s"),
        )
    ]


def steer_seen(fields: Fields) -> list[Report]:
    steer_id = id_in(fields)
    return [SteerSeen(steer_id)] if steer_id else []


def _amount(fields: Fields, key: str, limit: int, invalid: list[str]) -> float | None:
    """Return an amount that can be true; name the key of one that cannot."""
    if fields.get(key) is None:
        return None
    number = number_in(fields, key)
    if number is None or not 0 <= number <= limit:
        invalid.append(key)
        return None
    return number
