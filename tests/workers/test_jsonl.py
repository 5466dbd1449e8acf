from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

import msgspec
import pytest

from crewd.core.model import Capabilities, Result, Usage
from crewd.core.reports import (
    AskWithdrawn,
    Hello,
    Message,
    ProgressMade,
    ProviderTrouble,
    ResultGiven,
    Said,
    SteerSeen,
    ToolBegan,
    ToolDone,
    Used,
    Verdict,
    Warned,
)
from crewd.core.units import seconds
from crewd.core.words import Cause, OutboxKind, Outcome
from crewd.workers.adapter import MAX_STATE, Exit, Line
from crewd.workers.jsonl import MAX_ASKS, MAX_WARNINGS, JsonlAdapter, JsonlState
from crewd.workers.lines import Stream

DATA = Path(__file__).parents[1] / "data" / "jsonl"
KIB = 1024
DONE = {"type": "result", "outcome": "completed", "text": "done"}


def ids() -> Iterator[str]:
    return (f"ask_{n}" for n in count(1))


def fold(*lines: Mapping[str, object] | bytes) -> tuple[JsonlState, list[Said]]:
    adapter, drawn = JsonlAdapter(), ids()
    state, reports = adapter.initial(), list[Said]()
    for line in lines:
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        folded = adapter.fold(state, Line(Stream.STDOUT, data), lambda: next(drawn))
        state = folded.state
        reports += folded.reports
        assert folded.writes == ()
    return state, reports


def reported(*lines: Mapping[str, object] | bytes) -> list[Said]:
    return fold(*lines)[1]


def end(state: JsonlState, exit_code: int | None, signal: int | None = None) -> Verdict:
    return JsonlAdapter().end(state, Exit(exit_code=exit_code, signal=signal, stderr_tail="boom\n"))


@pytest.mark.parametrize(
    ("line", "report"),
    [
        (
            {"type": "hello", "protocol": 1, "name": "w", "version": "2", "can_steer": True},
            Hello(name="w", version="2", capabilities=Capabilities(can_ask=True, can_steer=True)),
        ),
        ({"type": "hello"}, Hello(capabilities=Capabilities(can_ask=True))),
        ({"type": "message", "text": "hi"}, Message("hi")),
        (
            {"type": "progress", "text": "half", "percent": 50},
            ProgressMade(text="half", percent=50),
        ),
        ({"type": "progress", "percent": 140.5, "step": "b"}, ProgressMade(percent=100, step="b")),
        ({"type": "progress", "percent": -1}, ProgressMade(percent=0)),
        (b'{"type":"progress","text":"x","percent":NaN}', ProgressMade(text="x")),
        (b'{"type":"progress","text":"x","percent":1e999}', ProgressMade(text="x")),
        (
            {"type": "tool", "id": "1", "name": "sh", "status": "started", "detail": "ls"},
            ToolBegan(tool_id="1", name="sh", title="ls"),
        ),
        (
            {"type": "tool", "id": "1", "name": "sh", "status": "Ended", "is_error": True},
            ToolDone(tool_id="1", is_error=True),
        ),
        (
            {"type": "tool", "name": "sh", "status": "started"},
            ToolBegan(tool_id="sh", name="sh"),
        ),
        (
            {"type": "usage", "model": "m", "input_tokens": 5, "cost_usd": 0.25},
            Used(usage=Usage(input_tokens=5, turns=1, cost_micros=250_000), model="m"),
        ),
        ({"type": "usage", "cost_usd": 1}, Used(usage=Usage(cost_micros=1_000_000))),
        ({"type": "steer_seen", "id": "steer_1"}, SteerSeen("steer_1")),
        (
            {"type": "error", "cause": "Throttled", "message": "429", "retry_after_s": 1.5},
            ProviderTrouble(cause=Cause.THROTTLED, message="429", retry_after=seconds(1.5)),
        ),
        (
            {"type": "error", "cause": "gremlins", "message": "?", "retry_after_s": -1},
            ProviderTrouble(cause=Cause.REPORTED, message="?"),
        ),
        (
            {"type": "result", "outcome": "COMPLETED", "text": "ok", "data": {"n": [1, 2.5]}},
            ResultGiven(
                result=Result(text="ok", data_json='{"n":[1,2.5]}'),
                outcome=Outcome.COMPLETED,
                retryable=False,
            ),
        ),
        (
            {"type": "result", "outcome": "failed", "error": "no net", "cause": "Transient"},
            ResultGiven(
                result=Result(),
                outcome=Outcome.FAILED,
                message="no net",
                cause=Cause.TRANSIENT,
                retryable=True,
            ),
        ),
        (
            {"type": "result", "outcome": "failed", "cause": 7, "retryable": False},
            ResultGiven(
                result=Result(),
                outcome=Outcome.FAILED,
                message="the worker gave up",
                cause=Cause.REPORTED,
                retryable=False,
            ),
        ),
    ],
)
def test_an_object_of_the_protocol_is_one_report(
    line: Mapping[str, object] | bytes, report: Said
) -> None:
    assert reported(line) == [report]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"plain text",
        b'["type","message"]',
        b'"type"',
        b'{"type":{}}',
        b'{"type":"dance"}',
        b'{"type":"message"}',
        b'{"type":"message","text":7}',
        b'{"type":"progress","percent":true}',
        b'{"type":"tool","id":"1","name":"x","status":"paused"}',
        b'{"type":"tool","status":"started"}',
        b'{"type":"usage","input_tokens":0}',
        b'{"type":"steer_seen"}',
        b'{"type":"ask_withdrawn","id":"never asked"}',
    ],
)
def test_anything_else_is_output(line: bytes) -> None:
    assert reported(line) == []


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"message","text":"cut',
        b'{"type":"message","text":"\xff"}',
        b'{"type":' + b"[" * 100_000,
        b'{"type":"result","data":' + b"9" * 5000 + b"x}",
    ],
)
def test_an_object_that_cannot_be_read_is_told_of(line: bytes) -> None:
    (warned,) = reported(line)

    assert isinstance(warned, Warned)
    assert warned.code == "line_unreadable"


def test_stderr_means_nothing() -> None:
    line = Line(Stream.STDERR, json.dumps(DONE).encode())

    assert JsonlAdapter().fold(JsonlState(), line, str).reports == ()


def test_an_oversize_line_is_warned_about() -> None:
    folded = JsonlAdapter().fold(JsonlState(), Line(Stream.STDOUT, b"", oversize=True), str)

    assert [r.code for r in folded.reports if isinstance(r, Warned)] == ["line_too_long"]


@pytest.mark.parametrize("bad", [-1, True, "12", 10**30])
def test_an_amount_that_cannot_be_true_is_left_out_with_a_warning(bad: object) -> None:
    used, warned = reported({"type": "usage", "input_tokens": bad, "output_tokens": 3})

    assert used == Used(usage=Usage(output_tokens=3, turns=1))
    assert warned == Warned("usage_invalid", "usage without a valid input_tokens was reported")


def test_only_the_first_hello_introduces_the_worker() -> None:
    assert len(reported({"type": "hello"}, {"type": "hello", "name": "again"})) == 1


def test_after_the_first_result_only_usage_is_reported() -> None:
    later: list[dict[str, object]] = [
        {"type": "message", "text": "bye"},
        {"type": "result", "outcome": "failed"},
        {"type": "ask", "id": "1", "question": "?"},
        {"type": "usage", "input_tokens": 1, "output_tokens": -1},
    ]
    reports = reported(DONE, *later)

    assert [type(r) for r in reports] == [ResultGiven, Used]


@pytest.mark.parametrize("outcome", [None, "", "cancelled", "done", 1])
def test_a_result_without_a_known_outcome_does_not_count(outcome: object) -> None:
    state, reports = fold({"type": "result", "text": "x", "outcome": outcome})

    assert [r.code for r in reports if isinstance(r, Warned)] == ["result_invalid"]
    assert not state.handed_in


@pytest.mark.parametrize(
    ("text", "result"),
    [
        (None, Result()),
        (7, Result(text="7")),
        ({"a": [1]}, Result(text='{"a":[1]}')),
        ("é" * 40 * KIB, Result(text="é" * 40 * KIB)),
    ],
)
def test_the_text_of_a_result_is_kept_whatever_it_is(text: object, result: Result) -> None:
    (given,) = reported({"type": "result", "outcome": "completed", "text": text})

    assert isinstance(given, ResultGiven)
    assert given.result == result


def test_data_over_its_limit_is_dropped_with_a_warning_and_the_result_stands() -> None:
    warned, given = reported({**DONE, "data": "x" * 65 * KIB})

    assert isinstance(warned, Warned)
    assert warned.code == "result_data_dropped"
    assert isinstance(given, ResultGiven)
    assert given.result == Result(text="done")


def test_a_result_with_half_a_surrogate_pair_is_not_lost() -> None:
    (given,) = reported(b'{"type":"result","outcome":"completed","text":"a\\ud83d"}')

    assert isinstance(given, ResultGiven)
    assert given.result.text == "a?"


@pytest.mark.parametrize(
    ("exit_code", "signal", "verdict"),
    [
        (
            0,
            None,
            Verdict(
                outcome=Outcome.NEEDS_ATTENTION,
                cause=Cause.NO_RESULT,
                message="ended without handing in a result",
            ),
        ),
        (
            2,
            None,
            Verdict(
                outcome=Outcome.FAILED,
                cause=Cause.EXIT,
                message="exited with code 2: boom",
                retryable=True,
            ),
        ),
        (
            None,
            9,
            Verdict(
                outcome=Outcome.FAILED,
                cause=Cause.SIGNAL,
                message="killed by SIGKILL: boom",
                retryable=True,
            ),
        ),
    ],
)
def test_without_a_result_the_exit_decides(
    exit_code: int | None, signal: int | None, verdict: Verdict
) -> None:
    assert end(JsonlState(), exit_code, signal) == verdict


def test_warnings_of_one_kind_are_bounded() -> None:
    reports = reported(*[{"type": "usage", "input_tokens": -1}] * 50)

    assert len(reports) == MAX_WARNINGS


def test_a_withdrawn_question_is_told_by_the_workers_own_id() -> None:
    ask: dict[str, object] = {"type": "ask", "id": "q", "question": "?"}

    assert reported(ask, {"type": "ask_withdrawn", "id": "q"})[-1] == AskWithdrawn("q")


def test_a_state_read_back_is_the_same_and_stays_within_its_limit() -> None:
    asks: list[dict[str, object]] = [
        {"type": "ask", "id": f"{n}" + "\x01" * 200, "question": "?"} for n in range(MAX_ASKS + 5)
    ]
    state, reports = fold(
        {"type": "hello"}, *asks, {"type": "result", "outcome": "failed", "error": "\x01" * 9999}
    )
    adapter = JsonlAdapter()

    text = adapter.dump(state)
    assert len(text) <= MAX_STATE
    assert adapter.load(text) == state
    assert adapter.load(adapter.dump(adapter.initial())) == adapter.initial()
    assert [r.code for r in reports if isinstance(r, Warned)] == ["asks_too_many"] * 5


@pytest.mark.parametrize("body", ['{"type":"stop"}', '{\n "type": "stop"\n}'])
def test_a_message_is_one_compact_line(body: str) -> None:
    assert JsonlAdapter().encode(OutboxKind.STOP, body) == b'{"type":"stop"}\n'


def described(report: Said) -> object:
    """Return a report as JSON values; fields that say nothing are left out."""
    fields: dict[str, object] = json.loads(msgspec.json.encode(report))
    return [type(report).__name__, {k: v for k, v in fields.items() if v not in (None, "", [])}]


def test_a_recorded_session_gives_the_recorded_reports() -> None:
    lines = (DATA / "session.jsonl").read_bytes().splitlines()
    recorded = (DATA / "session.reports.jsonl").read_text().splitlines()

    assert [described(r) for r in reported(*lines)] == [json.loads(r) for r in recorded]
