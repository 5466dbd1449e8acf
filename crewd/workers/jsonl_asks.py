"""A jsonl worker's question: what it must have, and what is mended with a warning."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, cast

from crewd.core.model import AskOption
from crewd.core.reports import Asked, Report, Warned
from crewd.core.spec import OnTimeout
from crewd.core.words import AskKind
from crewd.workers.adapter import NewId
from crewd.workers.jsonl_values import Fields, choice_in, flag_in, id_in, span_in, text_in
from crewd.workers.text import cut, is_over

MAX_OPTIONS: Final = 16
MAX_QUESTION: Final = 8 * 1024
_DETAIL_BYTES: Final = 16 * 1024
_LABEL_BYTES: Final = 256
_DESCRIPTION_BYTES: Final = 1024
_SLUG_LENGTH: Final = 40
_NO_WORD: Final = re.compile(r"[^a-z0-9]+")


def is_question(fields: Fields) -> bool:
    """Whether it has the two things nothing can stand in for: an id and a question."""
    question = fields.get("question")
    return bool(id_in(fields)) and isinstance(question, str) and bool(question.strip())


def asked(fields: Fields, new_id: NewId) -> list[Report]:
    """Return the question, after the warnings about what it lost."""
    warnings: list[Report] = []
    options = _options(fields, warnings)
    default = _default(fields, options, warnings)
    question = cast("str", fields["question"])
    if is_over(question, MAX_QUESTION):
        warnings.append(Warned("question_cut", "a question over 8 KiB was cut"))
    ask = Asked(
        id=new_id(),
        ref=id_in(fields),
        question=cut(question, MAX_QUESTION),
        kind=_kind(fields, warnings),
        detail=text_in(fields, "detail", _DETAIL_BYTES),
        options=options,
        allow_text=flag_in(fields, "allow_text", default=True) or not options,
        multiple=flag_in(fields, "multiple", default=False),
        timeout=span_in(fields, "timeout_s"),
        on_timeout=_on_timeout(fields, default, warnings),
        default_option_id=default,
    )
    return [*warnings, ask]


def _kind(fields: Fields, warnings: list[Report]) -> AskKind:
    kind = choice_in(fields, "kind", AskKind)
    if kind is None and fields.get("kind") is not None:
        warnings.append(_unknown(fields, "kind"))
    return kind or AskKind.QUESTION


_SHORT_NAMES: Final = {"default": OnTimeout.DEFAULT_OPTION, "fail": OnTimeout.FAIL_TASK}
"""As `crew run --on-ask` has them."""


def _on_timeout(fields: Fields, default: str, warnings: list[Report]) -> OnTimeout | None:
    chosen = choice_in(fields, "on_timeout", OnTimeout) or _SHORT_NAMES.get(
        str(fields.get("on_timeout")).lower()
    )
    if chosen is None and fields.get("on_timeout") is not None:
        warnings.append(_unknown(fields, "on_timeout"))
    if chosen is OnTimeout.DEFAULT_OPTION and not default:
        warnings.append(Warned("ask_setting_ignored", "on_timeout default_option has no default"))
        return None
    return chosen


def _default(fields: Fields, options: Iterable[AskOption], warnings: list[Report]) -> str:
    """Return the id of the option named as default, by its id or its label."""
    wanted = text_in(fields, "default", _LABEL_BYTES)
    for option in options:
        if wanted and wanted in (option.id, option.label):
            return option.id
    if fields.get("default") is not None:
        warnings.append(_unknown(fields, "default"))
    return ""


def _unknown(fields: Fields, key: str) -> Warned:
    value = cut(repr(fields.get(key)), _LABEL_BYTES)
    return Warned("ask_setting_ignored", f"{key} {value} of a question is unknown")


def _options(fields: Fields, warnings: list[Report]) -> tuple[AskOption, ...]:
    given = fields.get("options")
    items = cast("list[object]", given) if isinstance(given, list) else []
    options: list[AskOption] = []
    # Ids of the worker's own choosing come first: only a derived one can make way.
    taken = {id_in(cast("Fields", item)) for item in items if isinstance(item, dict)}
    seen: set[str] = set()
    for item in items:
        option = _option(item, taken, position=len(options) + 1)
        if option is None or option.id in seen or len(options) == MAX_OPTIONS:
            continue
        taken.add(option.id)
        seen.add(option.id)
        options.append(option)
    lost = len(items) - len(options)
    if lost or (given is not None and not isinstance(given, list)):
        why = "unreadable, with the id of another, or over 16"
        message = f"{lost or 'all'} options of a question were dropped: {why}"
        warnings.append(Warned("ask_options_dropped", message))
    return tuple(options)


def _option(item: object, taken: set[str], position: int) -> AskOption | None:
    if isinstance(item, dict):
        fields = cast("Fields", item)
        given = id_in(fields)
        label = text_in(fields, "label", _LABEL_BYTES) or cut(given, _LABEL_BYTES)
        description = text_in(fields, "description", _DESCRIPTION_BYTES)
    elif isinstance(item, str | int | float) and not isinstance(item, bool):
        given, label, description = "", cut(str(item), _LABEL_BYTES), ""
    else:
        return None
    if not label.strip():
        return None
    return AskOption(
        id=given or _derived_id(label, taken, position), label=label, description=description
    )


def _derived_id(label: str, taken: set[str], position: int) -> str:
    slug = _NO_WORD.sub("-", label.lower())[:_SLUG_LENGTH].strip("-") or str(position)
    candidate, number = slug, 1
    while candidate in taken:
        number += 1
        candidate = f"{slug}-{number}"
    return candidate
