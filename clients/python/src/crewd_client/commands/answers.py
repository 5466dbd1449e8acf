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
    unless an option is called so; anything else is text, but for a number that is none of them.
    """
    typed = typed.strip()
    if not typed:
        return None
    answer = read_answer(ask, typed)
    if answer.option_ids:
        return answer
    if typed.lower() == "d":
        return AnswerAskRequest(ask_id=ask.id, decline=True)
    if ask.options and (typed.isdecimal() or not ask.allow_text):
        raise NoAnswerError(f"{clean(typed)!r} is no option: {_choices(ask)}")
    return answer


def read_answer(ask: Ask, text: str) -> AnswerAskRequest:
    """Take a text as the options it names, else as it is."""
    chosen = _chosen_options(ask, text.strip())
    if chosen is not None:
        return AnswerAskRequest(ask_id=ask.id, option_ids=chosen)
    return AnswerAskRequest(ask_id=ask.id, text=text)


def _chosen_options(ask: Ask, typed: str) -> list[str] | None:
    """Give the ids of the options the text names, if it names nothing else."""
    whole = _option(ask.options, typed)
    if whole is not None:
        return [whole]
    if ask.max_choices <= 1:
        return None
    named = [_option(ask.options, part) for part in re.split(r"[,\s]+", typed) if part]
    found = [option_id for option_id in named if option_id is not None]
    return list(dict.fromkeys(found)) if found and len(found) == len(named) else None


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


def _option(options: Sequence[AskOption], name: str) -> str | None:
    """Give the id of the one option that has the name.

    As it is written before in another case, an id before a label, and both before a number.
    """
    folded = name.casefold()
    ways = (
        [option.id for option in options if option.id == name],
        [option.id for option in options if option.label == name],
        [option.id for option in options if option.id.casefold() == folded],
        [option.id for option in options if option.label.casefold() == folded],
        [option.id for number, option in enumerate(options, start=1) if str(number) == name],
    )
    return next((found[0] for found in ways if len(found) == 1), None)


def _choices(ask: Ask) -> str:
    return ", ".join(f"{i} ({clean(option.id)})" for i, option in enumerate(ask.options, start=1))
