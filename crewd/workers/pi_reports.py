"""Parts of pi's events, read leniently into reports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast

from crewd.core.model import Usage
from crewd.core.reports import Report, ToolBegan, ToolDone, Used
from crewd.workers.jsonl_values import Fields, flag_in, number_in, text_in
from crewd.workers.pi_keys import KEYS
from crewd.workers.pi_words import digest
from crewd.workers.text import cut

_NAME_BYTES: Final = 256
_CALL_CHARACTERS: Final = 128
_TITLE_BYTES: Final = 200
_DETAIL_BYTES: Final = 1024
_DETAIL_LINES: Final = 5
_MAX_TOKENS: Final = 10**12
_MAX_USD: Final = 10**6
_MICROS: Final = 1_000_000
_TELLING: Final = ("command", "path", "file_path", "pattern", "query", "question", "summary")
"""Arguments that say best what a tool is used for."""


def words_in(message: Fields) -> str:
    """Return what the message says, without thoughts and calls."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "".join(_texts(content))


def model_in(message: Fields) -> str:
    provider = text_in(message, "provider", _NAME_BYTES)
    model = text_in(message, "model", _NAME_BYTES)
    return f"{provider}/{model}" if provider and model else model


def used(message: Fields, *, turns: int) -> tuple[Report, ...]:
    """Return what the message cost; nothing for one that no model was asked for."""
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return ()
    fields = cast("Fields", usage)
    counted = Usage(
        input_tokens=_count(fields, "input"),
        output_tokens=_count(fields, "output"),
        cache_read_tokens=_count(fields, "cacheRead"),
        cache_write_tokens=_count(fields, "cacheWrite"),
    )
    cost = _cost(fields)
    if counted == Usage() and not cost:
        return ()
    total = Usage(turns=turns, cost_micros=cost)
    return (Used(usage=counted.plus(total), model=model_in(message)),)


def call_in(fields: Fields, key: str = "toolCallId") -> str:
    """Return the id of a tool's call. Those of some providers are as long as a page."""
    call = fields.get(key)
    if not isinstance(call, str) or len(call) <= _CALL_CHARACTERS:
        return call if isinstance(call, str) else ""
    return f"call_{digest(call)}"


def tool_began(fields: Fields) -> tuple[Report, ...]:
    call, name = call_in(fields), text_in(fields, "toolName", _NAME_BYTES)
    if not call:
        return ()
    return (ToolBegan(tool_id=call, name=name, title=_title(fields.get("args"))),)


def tool_done(fields: Fields) -> tuple[Report, ...]:
    call = call_in(fields)
    if not call:
        return ()
    result = fields.get("result")
    content = cast("Fields", result).get("content") if isinstance(result, dict) else None
    lines = "".join(_texts(content)).strip().splitlines()[:_DETAIL_LINES]
    return (
        ToolDone(
            tool_id=call,
            is_error=flag_in(fields, "isError", default=False),
            detail=cut("\n".join(lines), _DETAIL_BYTES),
        ),
    )


def with_way_out(error: str) -> str:
    """Return pi's own error with what can be done about it here; its advice is for a terminal."""
    said = error.strip().splitlines()[0] if error.strip() else ""
    if "No API key" not in said:
        return said or error
    provider = said.rpartition("found for ")[2].strip('". ')
    names = KEYS.get(provider, ())
    key = f"put {names[0]}" if names else "name a model, put the key of its provider"
    return f"{said.rstrip('.')}: {key} in the daemon's env file, or log in once with pi's /login"


def _texts(content: object) -> Iterable[str]:
    for part in cast("list[object]", content) if isinstance(content, list) else ():
        if isinstance(part, dict):
            fields = cast("Fields", part)
            text = fields.get("text")
            if fields.get("type", "text") == "text" and isinstance(text, str):
                yield text


def _count(fields: Fields, key: str) -> int:
    number = number_in(fields, key)
    return int(number) if number is not None and 0 <= number <= _MAX_TOKENS else 0


def _cost(fields: Fields) -> int | None:
    cost = fields.get("cost")
    total = number_in(cast("Fields", cost), "total") if isinstance(cost, dict) else None
    if total is None:
        total = number_in(fields, "cost")
    return round(total * _MICROS) if total is not None and 0 <= total <= _MAX_USD else None


def _title(arguments: object) -> str:
    if not isinstance(arguments, dict):
        return ""
    fields = cast("Fields", arguments)
    values = (fields.get(key) for key in (*_TELLING, *fields))
    text = next((v for v in values if isinstance(v, str) and v.strip()), "")
    return cut(" ".join(text.split()), _TITLE_BYTES)
