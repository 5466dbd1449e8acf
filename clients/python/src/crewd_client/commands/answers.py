"""What a person typed, as an answer to an ask."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from crewd_client.commands.terminal import clean, clean_block, word
from crewd_client.v1.ask_pb2 import Ask, AskOption
from crewd_client.v1.ask_service_pb2 import AnswerAskRequest


class NoAnswerError(Exception):
    """What was typed does not answer the ask; the message says what would."""


def answer_of(ask: Ask, typed: str) -> AnswerAskRequest | None:
    """Turn a typed line into an answer; nothing typed leaves the ask open.

    Numbers, ids and labels name options, several with commas or spaces between; `d` declines,
    unless an option is called so; anything else is text.
    """
    typed = typed.strip()
    if not typed:
        return None
    chosen = chosen_options(ask, typed)
    if chosen is not None:
        return AnswerAskRequest(ask_id=ask.id, option_ids=chosen)
    if typed.lower() == "d":
        return AnswerAskRequest(ask_id=ask.id, decline=True)
    if ask.options and not ask.allow_text:
        raise NoAnswerError(f"{clean(typed)!r} is no option: {_choices(ask)}")
    return AnswerAskRequest(ask_id=ask.id, text=typed)


def chosen_options(ask: Ask, typed: str) -> list[str] | None:
    """Give the ids of the options the text names, if it names nothing else."""
    names: dict[str, str] = {}
    for each in (_numbers, _labels, _ids):
        # An id goes before a label, and both before a number.
        names |= each(ask.options)
    if typed.lower() in names:
        return [names[typed.lower()]]
    words = [part for part in re.split(r"[,\s]+", typed.lower()) if part]
    if ask.max_choices <= 1 or not all(part in names for part in words):
        return None
    return list(dict.fromkeys(names[part] for part in words))


def question_lines(ask: Ask) -> Iterator[str]:
    """Give what to show before the answer is typed."""
    kind = "" if word(ask, "kind") in {"question", "unspecified"} else f" ({word(ask, 'kind')})"
    yield f"? {clean(ask.task_id)}{kind}: {clean_block(ask.question or ask.title)}"
    if ask.detail:
        yield from (f"  {line}" for line in clean_block(ask.detail).splitlines())
    for number, option in enumerate(ask.options, start=1):
        more = f" - {clean(option.description)}" if option.description else ""
        label = clean(option.label or option.id)
        name = "" if label == option.id else f" ({clean(option.id)})"
        yield f"  {number}) {label}{name}{more}"


def invitation(ask: Ask) -> str:
    """Give the words in front of the cursor."""
    if not ask.options:
        what = "text"
    else:
        what = "numbers or ids" if ask.max_choices > 1 else "number or id"
        what += ", or text" if ask.allow_text else ""
    return f"  {what}; empty leaves it open, d declines> "


def _numbers(options: Sequence[AskOption]) -> dict[str, str]:
    return {str(number): option.id for number, option in enumerate(options, start=1)}


def _labels(options: Sequence[AskOption]) -> dict[str, str]:
    return {option.label.lower(): option.id for option in options if option.label}


def _ids(options: Sequence[AskOption]) -> dict[str, str]:
    return {option.id.lower(): option.id for option in options}


def _choices(ask: Ask) -> str:
    return ", ".join(f"{i} ({clean(option.id)})" for i, option in enumerate(ask.options, start=1))
