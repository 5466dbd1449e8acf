from __future__ import annotations

import json
import math
import re

from hypothesis import given
from hypothesis import strategies as st

from crewd.core.reports import Said
from crewd.core.words import Outcome
from crewd.workers.adapter import Exit, Line
from crewd.workers.jsonl import JsonlAdapter, JsonlState
from crewd.workers.lines import Stream

KEYS = re.findall(
    r"\w+",
    "id text percent step name status detail is_error model version can_steer input_tokens "
    "output_tokens cost_usd question options kind multiple allow_text timeout_s on_timeout "
    "default cause message retry_after_s outcome error retryable data",
)
TYPES = re.findall(
    r"\w+",
    "hello message progress tool usage ask ask_withdrawn steer_seen artifact error result",
)
VALUES: list[object] = [
    *(None, True, 0, -1, 7, 2**64, 10**400, 0.5, -0.0, 1e308, math.inf, math.nan),
    *("", " ", "x", "\x00", "\ud83d", "é" * 200, "completed", "failed", "started", "7"),
    *([], [None], ["a", "a", 1, {}], [{"id": "a"}, {"label": "b"}], [[[["deep"]]]]),
    *({}, {"id": 1}, {"a": {"b": {"c": [math.nan]}}}),
]
OBJECTS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=10)


def line(kind: str, fields: dict[str, object]) -> bytes:
    return json.dumps({**fields, "type": kind}).encode()


LINES = st.builds(line, st.sampled_from(TYPES), OBJECTS)


def fold(lines: list[bytes]) -> tuple[JsonlState, list[Said]]:
    adapter = JsonlAdapter()
    state, reports = adapter.initial(), list[Said]()
    for data in lines:
        folded = adapter.fold(state, Line(Stream.STDOUT, data), lambda: "ask_1")
        state = folded.state
        reports += folded.reports
    return state, reports


@given(st.lists(st.binary(max_size=60).filter(lambda line: b"{" not in line)))
def test_garbage_is_folded_without_a_report(lines: list[bytes]) -> None:
    assert fold(lines) == (JsonlState(), [])


@given(LINES, st.integers(0, 500), st.binary(max_size=2))
def test_a_damaged_object_never_breaks_the_fold(data: bytes, place: int, noise: bytes) -> None:
    at = place % len(data)

    fold([data[:at] + noise + data[at + 1 :]])


@given(st.lists(LINES, max_size=6))
def test_an_object_with_any_values_never_breaks_the_fold(lines: list[bytes]) -> None:
    state, reports = fold(lines)

    adapter = JsonlAdapter()
    assert adapter.load(adapter.dump(state)) == state
    assert adapter.end(state, Exit(exit_code=0, signal=None)).outcome in Outcome
    for report in reports:
        assert repr(report).encode()
