from __future__ import annotations

import json
from datetime import timedelta

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from crewd_client.json import JsonError, from_json, parse_duration, to_json, to_line
from crewd_client.v1.attempt_event_pb2 import MessagePosted
from crewd_client.v1.event_pb2 import Event
from crewd_client.v1.run_pb2 import RUN_STATUS_COMPLETED, Run
from crewd_client.v1.run_stream_pb2 import ReadOutputResponse
from crewd_client.v1.spec_pb2 import FAILURE_MODE_CONTINUE, RetryPolicy, RunSpec, TaskSpec


def problems_of(data: object) -> list[str]:
    with pytest.raises(JsonError) as raised:
        from_json(data, RunSpec)
    return [str(problem) for problem in raised.value.problems]


def test_defaults_are_there_and_what_is_unset_is_not() -> None:
    shown = to_json(Run(id="run_x", status=RUN_STATUS_COMPLETED))

    assert shown["status"] == "completed"
    assert (shown["title"], shown["labels"], shown["last_sequence"]) == ("", {}, 0)
    assert "workspace" not in shown
    assert "end_time" not in shown


def test_times_spans_large_numbers_and_bytes_have_their_forms() -> None:
    run = Run(last_sequence=2**60, create_time=Timestamp(seconds=1, nanos=5_000_000))
    task = TaskSpec(timeout=Duration(seconds=1, nanos=500_000_000))

    assert to_json(run)["last_sequence"] == 2**60
    assert to_json(run)["create_time"] == "1970-01-01T00:00:01.005Z"
    assert to_json(task)["timeout"] == "1.5s"
    assert to_json(ReadOutputResponse(data=b"\x00\xff"))["data"] == "AP8="


def test_an_event_has_its_payload_under_data() -> None:
    event = Event(sequence=4, kind="message_posted", message_posted=MessagePosted(text="hi"))

    shown = to_json(event)

    assert (shown["kind"], shown["data"]) == (
        "message_posted",
        {"role": "", "text": "hi", "truncated": False},
    )
    assert "message_posted" not in shown
    assert from_json(shown, Event) == event


def test_an_event_of_a_kind_not_known_has_empty_data() -> None:
    assert to_json(Event(kind="later"))["data"] == {}


def test_a_value_not_known_stays_a_number() -> None:
    run = Run.FromString(b"\x20\x63")

    assert to_json(run)["status"] == 99
    assert from_json(to_json(run), Run) == run


def test_a_line_holds_nothing_that_upsets_a_terminal() -> None:
    nasty = "\x1b[31m\x9b2J\x7f\u202e\nü"

    line = to_line({"text": nasty})

    assert line.isprintable()
    assert json.loads(line) == {"text": nasty}


@pytest.mark.parametrize("mode", ["continue", "CONTINUE", "Continue", "FAILURE_MODE_CONTINUE"])
def test_enum_values_may_be_written_in_any_case(mode: str) -> None:
    assert from_json({"failure_mode": mode}, RunSpec).failure_mode == FAILURE_MODE_CONTINUE


def test_what_is_printed_can_be_read() -> None:
    spec = RunSpec(
        goal="g",
        tasks=[TaskSpec(id="a", command=["x"], env={"A": "1"}, retry=RetryPolicy(jitter=0.5))],
        failure_mode=FAILURE_MODE_CONTINUE,
    )

    assert from_json(json.loads(to_line(to_json(spec))), RunSpec) == spec


def test_all_that_is_wrong_is_told_at_once_and_where() -> None:
    data = {
        "gaol": "g",
        "tasks": [{"id": 1, "retry": {"max_attemps": 3}, "timeout": "soon"}],
        "limits": {"max_tasks": 2**40, "max_tokens": 1.5},
        "keep": "yes",
        "failure_mode": "continu",
        "workspace": [],
    }

    assert problems_of(data) == [
        "gaol: unknown key 'gaol', did you mean 'goal'?",
        "tasks[0].id: text is expected, not a number",
        "tasks[0].retry.max_attemps: unknown key 'max_attemps', did you mean 'max_attempts'?",
        "tasks[0].timeout: 'soon' is no duration: write e.g. 30s, 1.5s, 2m or 1h30m",
        "limits.max_tasks: 1099511627776 is out of range: -2147483648 to 2147483647",
        "limits.max_tokens: a whole number is expected, not 1.5",
        "keep: true or false is expected, not text",
        "failure_mode: 'continu' is none of fail_fast, continue, did you mean 'continue'?",
        "workspace: a mapping is expected, not a list",
    ]


def test_null_is_as_good_as_nothing() -> None:
    assert from_json({"goal": None, "tasks": None, "limits": None}, RunSpec) == RunSpec()


def test_text_that_cannot_be_encoded_is_a_problem() -> None:
    assert problems_of({"goal": "\ud800"}) == ["goal: the text is not valid Unicode"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1s", 1), ("1.5s", 1.5), ("2m", 120), ("1h30m", 5400), ("90", 90), ("250ms", 0.25)],
)
def test_a_duration_is_written_as_people_write_it(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "s", "-1s", "1x", "30m1h", "1e3", "9" * 400])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no duration|too long"):
        parse_duration(text)
