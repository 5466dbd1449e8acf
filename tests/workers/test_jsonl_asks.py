from __future__ import annotations

import json

import pytest

from crewd.core.model import AskOption
from crewd.core.reports import Asked, Said, Warned
from crewd.core.spec import OnTimeout
from crewd.core.units import seconds
from crewd.core.words import AskKind
from crewd.workers.adapter import Line
from crewd.workers.jsonl import JsonlAdapter
from crewd.workers.lines import Stream


def ask(**fields: object) -> tuple[Asked, list[str]]:
    """Return the question and the codes of the warnings that came with it."""
    reports = folded({"type": "ask", "id": "q1", "question": "Which?", **fields})
    (asked,) = (r for r in reports if isinstance(r, Asked))
    return asked, [r.code for r in reports if isinstance(r, Warned)]


def folded(*lines: dict[str, object]) -> list[Said]:
    adapter = JsonlAdapter()
    state, reports = adapter.initial(), list[Said]()
    for line in lines:
        data = json.dumps(line).encode()
        state_and_reports = adapter.fold(state, Line(Stream.STDOUT, data), lambda: "ask_1")
        state = state_and_reports.state
        reports += state_and_reports.reports
    return reports


def option_ids(*options: object) -> list[str]:
    return [o.id for o in ask(options=list(options))[0].options]


def test_a_plain_question_waits_for_any_text() -> None:
    assert ask() == (Asked(id="ask_1", ref="q1", question="Which?"), [])


def test_a_full_question_keeps_everything() -> None:
    asked, warnings = ask(
        kind="Permission",
        detail="rm -rf build",
        options=[{"id": "y", "label": "Yes", "description": "delete"}, "No"],
        multiple=True,
        allow_text=False,
        timeout_s=90,
        on_timeout="DEFAULT_OPTION",
        default="No",
    )

    assert warnings == []
    assert asked == Asked(
        id="ask_1",
        ref="q1",
        question="Which?",
        kind=AskKind.PERMISSION,
        detail="rm -rf build",
        options=(
            AskOption(id="y", label="Yes", description="delete"),
            AskOption(id="no", label="No"),
        ),
        allow_text=False,
        multiple=True,
        timeout=seconds(90),
        on_timeout=OnTimeout.DEFAULT_OPTION,
        default_option_id="no",
    )


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["Use Redis", "use redis!", "Keep it"], ["use-redis", "use-redis-2", "keep-it"]),
        (["да", "нет"], ["1", "2"]),
        ([1, 2.5], ["1", "2-5"]),
        (["a", {"id": "a", "label": "A"}], ["a-2", "a"]),
        ([{"id": "only"}], ["only"]),
        ([{"label": "No id"}], ["no-id"]),
        (["x" * 200], ["x" * 40]),
    ],
)
def test_every_option_has_an_id_of_its_own(options: list[object], ids: list[str]) -> None:
    assert option_ids(*options) == ids


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ([str(n) for n in range(20)], 16),
        (["a", None, True, [1], {"x": 1}, " "], 1),
        ([{"id": "a", "label": "one"}, {"id": "a", "label": "two"}], 1),
        ("yes or no", 0),
    ],
)
def test_options_that_cannot_be_kept_are_dropped_with_a_warning(options: object, kept: int) -> None:
    asked, warnings = ask(options=options)

    assert len(asked.options) == kept
    assert warnings == ["ask_options_dropped"]


def test_a_long_question_is_cut_with_a_warning() -> None:
    asked, warnings = ask(question="x" * 9000)

    assert len(asked.question) == 8 * 1024
    assert warnings == ["question_cut"]


@pytest.mark.parametrize(
    "setting",
    [
        {"kind": "riddle"},
        {"on_timeout": "panic"},
        {"on_timeout": 5},
        {"default": "nothing offered"},
        {"on_timeout": "default_option"},
    ],
)
def test_an_unknown_setting_is_left_out_with_a_warning(setting: dict[str, object]) -> None:
    asked, warnings = ask(**setting)

    assert (asked.kind, asked.on_timeout, asked.default_option_id) == (AskKind.QUESTION, None, "")
    assert warnings == ["ask_setting_ignored"]


@pytest.mark.parametrize("seconds_given", [0, -1, "soon", True, 1e300])
def test_a_timeout_that_is_no_time_is_none(seconds_given: object) -> None:
    assert ask(timeout_s=seconds_given)[0].timeout is None


def test_without_options_text_is_always_allowed() -> None:
    assert ask(allow_text=False)[0].allow_text


def test_the_same_id_is_the_same_question() -> None:
    first: dict[str, object] = {"type": "ask", "id": "q1", "question": "Which?"}

    assert len(folded(first, first, {**first, "question": "Really?"})) == 1


@pytest.mark.parametrize(
    "line",
    [
        {"question": "no id"},
        {"id": 7, "question": "an id that is no text"},
        {"id": "x" * 300, "question": "an id nobody could send back"},
        {"id": "q"},
        {"id": "q", "question": " "},
        {"id": "q", "question": ["?"]},
    ],
)
def test_what_cannot_be_asked_is_warned_about(line: dict[str, object]) -> None:
    (warned,) = folded({"type": "ask", **line})

    assert isinstance(warned, Warned)
    assert warned.code == "ask_invalid"
