from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from crewd.core.messages import (
    prompt_message,
    reply_message,
    steer_message,
    stop_message,
)
from crewd.core.reports import (
    ArtifactGiven,
    AskWithdrawn,
    Hello,
    Report,
    ResultGiven,
    SteerSeen,
    ToolBegan,
    ToolDone,
    TurnEnded,
    TurnStop,
    Used,
    Warned,
)
from crewd.core.units import seconds
from crewd.core.words import Cause, OutboxKind, Outcome
from crewd.workers.adapter import MAX_STATE, Exit, Folded, Line
from crewd.workers.lines import Stream
from crewd.workers.pi import PiAdapter
from crewd.workers.pi_state import MAX_WARNINGS, PiState
from crewd.workers.text import is_over
from tests.support.pi_golden import DATA, fold, golden

RECORDED = sorted(path for path in DATA.glob("*.jsonl") if ".reports" not in path.name)
SETTLED: Mapping[str, object] = {"type": "agent_settled"}
KIB = 1024


def heard(*events: Mapping[str, object], state: PiState | None = None) -> Folded[PiState]:
    return fold([json.dumps(event).encode() for event in events], state)


def said(text: str, stop: str = "stop", **fields: object) -> Mapping[str, object]:
    message = {"role": "assistant", "content": text, "stopReason": stop, **fields}
    return {"type": "message_end", "message": message}


def told(kind: OutboxKind, body: str) -> list[dict[str, object]]:
    lines = PiAdapter().encode(kind, body).splitlines()
    return [json.loads(line) for line in lines]


def asked(tool: str, **fields: object) -> Mapping[str, object]:
    return {
        "type": "extension_ui_request",
        "id": "r1",
        "method": "input",
        "title": f"crewd:{tool}",
        "placeholder": json.dumps(fields),
    }


def last(folded: Folded[PiState]) -> Report | ArtifactGiven:
    return folded.reports[-1]


def ended(folded: Folded[PiState]) -> TurnEnded:
    report = last(folded)
    assert isinstance(report, TurnEnded)
    return report


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_stream_makes_the_reports_it_made(path: Path) -> None:
    assert golden(path) == path.with_suffix(".reports.jsonl").read_text()


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_state_that_is_stored_after_every_line_makes_the_same_reports(path: Path) -> None:
    adapter, state, reports = PiAdapter(), PiState(), list[Report | ArtifactGiven]()
    for line in path.read_bytes().splitlines():
        folded = fold([line], adapter.load(adapter.dump(state)))
        state = folded.state
        reports += folded.reports
    assert tuple(reports) == fold(path.read_bytes().splitlines()).reports


def test_it_says_hello_once_and_again_when_it_says_which_model_it_has() -> None:
    message = said("hi", provider="p", model="m")
    hellos = [r for r in heard(SETTLED, message, message).reports if isinstance(r, Hello)]
    assert [hello.model for hello in hellos] == ["", "p/m"]
    assert hellos[0].capabilities == PiAdapter.capabilities


def test_only_the_last_message_counts() -> None:
    failed = said("", "error", errorMessage="503: busy")
    assert ended(heard(failed, said("well"), SETTLED)).stop is TurnStop.DONE
    assert ended(heard(said("well"), failed, SETTLED)).cause is Cause.TRANSIENT
    assert ended(heard(SETTLED)).result.text == ""


def test_what_is_said_after_an_answer_was_cut_is_added_to_it() -> None:
    first = heard(said("one, ", "length"), SETTLED)
    assert (ended(first).stop, ended(first).result.text) == (TurnStop.LENGTH, "one, ")
    second = heard(said("two"), SETTLED, state=first.state)
    assert (ended(second).stop, ended(second).result.text) == (TurnStop.DONE, "one, two")
    assert ended(heard(said("three"), SETTLED, state=second.state)).result.text == "three"


def test_a_long_answer_is_whole_unless_it_has_to_be_stored_first() -> None:
    adapter, text = PiAdapter(), "\x01é" * 200 * KIB
    state = heard(said("cut ", "length"), SETTLED, said(text)).state
    assert ended(heard(SETTLED, state=state)).result.text == f"cut {text}"
    stored = adapter.dump(state)
    assert not is_over(stored, MAX_STATE)
    result = ended(heard(SETTLED, state=adapter.load(stored))).result
    assert (result.text[:6], result.truncated) == ("cut \x01é", True)


def test_an_aborted_turn_is_one_even_when_pi_calls_it_an_error() -> None:
    for stop, error in (("aborted", "Request aborted"), ("error", "This operation was aborted")):
        turn = ended(heard(said("", stop, errorMessage=error), SETTLED))
        assert (turn.stop, turn.cause) == (TurnStop.ABORTED, None)


def test_a_prompt_that_pi_refuses_ends_the_turn_that_will_never_begin() -> None:
    refused = {"type": "response", "command": "prompt", "success": False}
    turn = ended(heard({**refused, "error": "No model selected.\n\nUse /login"}))
    assert (turn.cause, turn.retryable) == (Cause.MODEL_UNKNOWN, False)
    assert turn.message == "No model selected."


def test_pi_is_not_let_to_try_again_by_itself() -> None:
    writes = heard({"type": "auto_retry_start", "attempt": 1}).writes
    assert [told(*write) for write in writes] == [[{"type": "abort_retry"}]]


def test_dialogs_that_nobody_sees_are_closed_at_once() -> None:
    for method in ("select", "confirm", "input", "editor"):
        request = {"type": "extension_ui_request", "id": "d1", "method": method, "title": "?"}
        closed = {"type": "extension_ui_response", "id": "d1", "cancelled": True}
        assert [told(*write) for write in heard(request).writes] == [[closed]]
    notice = {"type": "extension_ui_request", "id": "d2", "method": "notify", "message": "x"}
    assert heard(notice).writes == ()


def test_a_question_without_words_is_closed_and_a_result_without_a_summary_refused() -> None:
    [[closed]] = [told(*write) for write in heard(asked("ask", question=" ")).writes]
    assert closed["cancelled"] is True
    for fields in ({"summary": " "}, {"summary": "s", "data": "x" * 65 * KIB}):
        folded = heard(asked("submit_result", **fields))
        [[refused]] = [told(*write) for write in folded.writes]
        assert json.loads(str(refused["value"]))["taken"] is False
        assert not any(isinstance(report, ResultGiven) for report in folded.reports)


def test_files_handed_in_come_before_the_result() -> None:
    given = [{"path": "out/a.md", "description": "the plan"}, "b.txt", {"name": "no path"}, 7]
    reports = heard(asked("submit_result", summary="s", data=None, artifacts=given)).reports[1:]
    first = ArtifactGiven(name="a.md", path="out/a.md", description="the plan")
    assert reports[:2] == (first, ArtifactGiven(name="b.txt", path="b.txt"))
    assert isinstance(reports[2], ResultGiven)
    assert (reports[2].ref, reports[2].result.data_json) == ("r1", "")


def test_a_file_under_a_name_that_could_lead_elsewhere_is_told_and_the_result_taken() -> None:
    names = ["../a", "/a", "a//b", "a\\b", "a\x1bb", "sub/a.md"]
    given = [*({"path": "a.md", "name": name} for name in names), "out/.."]
    reports = heard(asked("submit_result", summary="s", artifacts=given)).reports[1:]
    *refused, kept, climbing, result = reports
    for name, warned in zip([*names[:5], ".."], [*refused, climbing], strict=True):
        assert isinstance(warned, Warned)
        assert (warned.code, repr(name) in warned.message) == ("artifact_invalid", True)
    assert kept == ArtifactGiven(name="sub/a.md", path="a.md")
    assert isinstance(result, ResultGiven)


def test_notes_that_were_not_read_are_said_again_before_the_turn_ends() -> None:
    [steer] = told(OutboxKind.STEER, steer_message("steer_1", "left!"))
    queued = {"type": "response", "command": "steer", "success": True, "id": steer["id"]}
    folded = heard(queued, said("done"), SETTLED)
    assert not any(isinstance(report, TurnEnded) for report in folded.reports)
    [[take_back]] = [told(*write) for write in folded.writes]
    assert take_back["type"] == "clear_queue"
    given = {"type": "response", "command": "clear_queue", "success": True}
    back = {**given, "id": take_back["id"], "data": {"steering": ["left!"]}}
    again = heard(back, state=folded.state)
    [[prompt]] = [told(*write) for write in again.writes]
    assert prompt["message"] == "left!"
    read = {"type": "message_end", "message": {"role": "user", "content": "left!"}}
    after = heard(read, said("going left"), SETTLED, state=again.state)
    assert after.reports[0] == SteerSeen("steer_1")
    assert ended(after).result.text == "going left"
    nothing = {**given, "id": take_back["id"]}
    assert ended(heard(nothing, state=folded.state)).result.text == "done"


def test_a_failed_turn_ends_whatever_was_not_read() -> None:
    [steer] = told(OutboxKind.STEER, steer_message("steer_1", "left!"))
    queued = {"type": "response", "command": "steer", "success": True, "id": steer["id"]}
    failed = said("", "error", errorMessage="500: no")
    assert ended(heard(queued, failed, SETTLED)).stop is TurnStop.FAILED


def test_what_tools_and_compactions_used_is_counted_but_is_no_turn() -> None:
    usage = {"input": 7, "output": 1, "cacheRead": 2, "cost": {"total": 0.00001}}
    tool = {"type": "message_end", "message": {"role": "toolResult", "usage": usage}}
    compaction = {"type": "compaction_end", "result": {"usage": usage}}
    reports = heard(tool, compaction).reports
    used = [report.usage for report in reports if isinstance(report, Used)]
    assert [(u.input_tokens, u.turns, u.cost_micros) for u in used] == [(7, 0, 10)] * 2


def test_a_long_id_of_a_call_still_names_it() -> None:
    call = "call_1|" + "x" * 500
    began = {"type": "tool_execution_start", "toolCallId": call, "toolName": "ask"}
    request = asked("ask", question="A?", call=call)
    done = {**began, "type": "tool_execution_end"}
    first, _, withdrawn, last = heard(began, request, done).reports[1:]
    assert isinstance(first, ToolBegan)
    assert isinstance(last, ToolDone)
    assert (first.tool_id, withdrawn) == (last.tool_id, AskWithdrawn("r1"))


def test_warnings_come_to_an_end() -> None:
    error = {"type": "extension_error", "error": "no"}
    reports = heard(*[error] * 100).reports
    assert sum(isinstance(report, Warned) for report in reports) == MAX_WARNINGS


def test_a_line_that_is_too_long_to_be_read_says_nothing() -> None:
    state = heard(said("done")).state
    folded = PiAdapter().fold(state, Line(Stream.STDOUT, b"", oversize=True), lambda: "ask_1")
    assert folded == Folded(state)


def test_what_pi_is_told_is_one_command_a_line() -> None:
    text = "one\ntwo \u2028 \N{SNOWMAN}"
    [prompt] = told(OutboxKind.TASK, prompt_message(text))
    assert (prompt["type"], prompt["message"]) == ("prompt", text)
    [reply] = told(OutboxKind.REPLY, reply_message("r1", taken=False, message="no"))
    assert (reply["type"], reply["id"]) == ("extension_ui_response", "r1")
    assert json.loads(str(reply["value"])) == {"taken": False, "message": "no", "done": False}
    stop = told(OutboxKind.STOP, stop_message("cancelled", seconds(5)))
    assert [command["type"] for command in stop] == ["clear_queue", "abort"]


@pytest.mark.parametrize(
    ("stderr", "cause", "message"),
    [
        ("Warning: x\nError: No API key found for groq.\n", Cause.AUTH, "GROQ_API_KEY"),
        ('Error: Model "z/n" not found. Use --list-models\n', Cause.MODEL_UNKNOWN, "z/n"),
        ("Error: No models available. Use /login\n", Cause.MODEL_UNKNOWN, "No models"),
        ("SyntaxError: no\n\nNode.js v20.2.1\n", Cause.EXECUTABLE_MISSING, "PATH is 20.2.1"),
        ("Error: no\n\nNode.js v22.1.0\n", Cause.EXIT, "exited with code 1: Node.js v22.1.0"),
        ("boom\n", Cause.EXIT, "exited with code 1: boom"),
    ],
)
def test_a_pi_that_never_began_says_why(stderr: str, cause: Cause, message: str) -> None:
    adapter = PiAdapter()
    seen = Exit(exit_code=1, signal=None, stderr_tail=stderr)
    verdict = adapter.end(adapter.initial(), seen)
    assert (verdict.outcome, verdict.cause) == (Outcome.FAILED, cause)
    assert message in verdict.message
    assert verdict.result is None
    killed = adapter.end(adapter.initial(), Exit(exit_code=None, signal=9, stderr_tail=stderr))
    assert (killed.cause, killed.retryable) == (Cause.SIGNAL, True)
