from __future__ import annotations

import json
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from crewd.core.reports import TurnEnded
from crewd.workers.adapter import MAX_STATE, Line
from crewd.workers.lines import Stream
from crewd.workers.pi import PiAdapter
from crewd.workers.pi_events import HANDLERS
from crewd.workers.pi_state import PiState
from tests.support.pi_golden import DATA, fold

LINES = [line for path in DATA.glob("*.jsonl") for line in path.read_bytes().splitlines()]
EVENTS = [line for line in LINES if line.startswith(b"{") and b'"type"' in line]
STRANGE: list[object] = [
    *(None, True, 0, -1, 2**70, 1e308, "", "x", "\ud83d", "é" * 300, [], [None], [[]], {}),
    *({"type": "text"}, [{"type": "text", "text": 7}], {"content": "x"}),
    {"data": {"steering": 1}},
]
VALUES = st.sampled_from(STRANGE)


def paths_of(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [path] if path else []
    items: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        items += cast("dict[str, object]", value).items()
    elif isinstance(value, list):
        items += enumerate(cast("list[object]", value))
    for key, inner in items:
        found += paths_of(inner, (*path, key))
    return found


def replaced(line: bytes, place: int, value: object) -> bytes:
    event: Any = json.loads(line)
    paths = paths_of(event)
    path = paths[place % len(paths)]
    holder = event
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return json.dumps(event).encode()


def check(state: PiState) -> None:
    adapter = PiAdapter()
    assert len(adapter.dump(state).encode()) <= MAX_STATE
    adapter.load(adapter.dump(state))


@given(st.sampled_from(EVENTS), st.integers(0, 10_000), VALUES)
def test_an_event_with_a_wrong_value_never_breaks_the_fold(
    line: bytes, place: int, value: object
) -> None:
    check(fold([replaced(line, place, value)]).state)


@given(st.lists(st.sampled_from(EVENTS), max_size=30))
def test_events_in_any_order_never_break_it(lines: list[bytes]) -> None:
    folded = fold(lines)
    check(folded.state)
    settled = sum(b'"agent_settled"' in line or b'"success":false' in line for line in lines)
    assert sum(isinstance(report, TurnEnded) for report in folded.reports) <= settled


@given(st.sampled_from(EVENTS), st.integers(0, 5000), st.binary(max_size=3))
def test_a_damaged_line_never_breaks_it(line: bytes, place: int, noise: bytes) -> None:
    at = place % len(line)
    check(fold([line[:at] + noise + line[at + 1 :], line[:at]]).state)


@given(st.lists(st.binary(max_size=60)))
def test_garbage_is_folded_without_a_report(lines: list[bytes]) -> None:
    assert fold(lines).reports == ()


@given(st.sampled_from(sorted(HANDLERS)))
def test_a_bare_event_never_breaks_it(kind: str) -> None:
    check(fold([json.dumps({"type": kind}).encode()]).state)


def test_the_words_of_stderr_mean_nothing() -> None:
    line = Line(Stream.STDERR, b'{"type":"agent_settled"}')
    assert PiAdapter().fold(PiState(), line, lambda: "ask_1").reports == ()
