"""The `jsonl` adapter: workers that speak one JSON object a line, as the contract lays down.

Strict about what counts (a result, a question), lenient about the rest: what is no object of
the protocol is output, and nothing a worker writes is an error of ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from crewd.core.effects import StartWorker
from crewd.core.model import Capabilities, Result
from crewd.core.reports import (
    ArtifactGiven,
    AskWithdrawn,
    Hello,
    Report,
    ResultGiven,
    Used,
    Verdict,
    Warned,
)
from crewd.core.words import Cause, OutboxKind, Outcome
from crewd.workers import jsonl_artifacts, jsonl_asks, jsonl_reports
from crewd.workers.adapter import Exit, Folded, Line, NewId
from crewd.workers.exits import failed
from crewd.workers.jsonl_values import (
    Fields,
    choice_in,
    compact_json,
    flag_in,
    id_in,
    read_object,
    text_in,
)
from crewd.workers.lines import Stream
from crewd.workers.text import cut, is_over

MAX_ASKS: Final = 1024
"""Different questions of one attempt."""
MAX_ARTIFACTS: Final = 1000
"""What one attempt may hand in to be kept."""
MAX_WARNINGS: Final = 8
"""Warnings of one code in one attempt."""
_DATA_BYTES: Final = 64 * 1024
_MESSAGE_BYTES: Final = 4 * 1024
_NAME_BYTES: Final = 256


class JsonlState(msgspec.Struct, frozen=True, omit_defaults=True):
    greeted: bool = False
    asked: tuple[str, ...] = ()
    """Digests of the worker's own ids of its questions."""
    warned: dict[str, int] = {}
    artifacts: int = 0
    """Handed in so far."""
    handed_in: bool = False
    """A result was given: from then on only usage counts."""


_Said = Report | ArtifactGiven
_Handler = Callable[[JsonlState, Fields, NewId], tuple[JsonlState, Sequence[_Said]]]


class JsonlAdapter:
    name = "jsonl"
    wants_stdin = True
    capabilities = Capabilities(can_ask=True)
    folds = frozenset({Stream.STDOUT})
    mark = b'"type"'
    repeats = None

    def arguments(self, start: StartWorker) -> tuple[str, ...]:  # noqa: ARG002
        """Add nothing: the task's command says it all."""
        return ()

    def variables(self, model: str) -> tuple[str, ...]:  # noqa: ARG002
        """Take nothing: a task names what it needs in `env_from`."""
        return ()

    def initial(self) -> JsonlState:
        return JsonlState()

    def fold(self, state: JsonlState, line: Line, new_id: NewId) -> Folded[JsonlState]:
        if line.stream is not Stream.STDOUT:
            return Folded(state)
        if line.oversize:
            message = "a line over 8 MiB was kept as output, whatever it said"
            return _bounded(state, (Warned("line_too_long", message),))
        fields = read_object(line.data)
        if fields is None:
            return _unreadable(state, line.data)
        return _fold_object(state, fields, new_id)

    def end(self, state: JsonlState, exit: Exit) -> Verdict:  # noqa: A002, ARG002
        if exit.exit_code == 0 and exit.signal is None:
            return Verdict(
                outcome=Outcome.NEEDS_ATTENTION,
                cause=Cause.NO_RESULT,
                message="ended without handing in a result",
            )
        return failed(exit)

    def encode(self, kind: OutboxKind, body: str) -> bytes:  # noqa: ARG002 - the body says it
        line = body.encode("utf-8", "replace")
        if b"\n" in line:
            line = msgspec.json.format(line, indent=-1)
        return line + b"\n"

    def dump(self, state: JsonlState) -> str:
        return msgspec.json.encode(state).decode()

    def load(self, text: str) -> JsonlState:
        return msgspec.json.decode(text, type=JsonlState)


def _unreadable(state: JsonlState, data: bytes) -> Folded[JsonlState]:
    """Say so of a line that was meant for us; any other is output."""
    if not data.lstrip().startswith(b"{"):
        return Folded(state)
    message = "a line that looks like an object of the protocol is no readable JSON: it is output"
    return _bounded(state, (Warned("line_unreadable", message),))


def _fold_object(state: JsonlState, fields: Fields, new_id: NewId) -> Folded[JsonlState]:
    kind = fields.get("type")
    handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
    if handler is None:
        return Folded(state)
    after, reports = handler(state, fields, new_id)
    if not state.handed_in:
        return _bounded(after, reports)
    return Folded(state, tuple(r for r in reports if isinstance(r, Used)))


def _bounded(state: JsonlState, reports: Sequence[_Said]) -> Folded[JsonlState]:
    """Keep a worker that does the same thing wrong all the time from filling the log."""
    kept: list[_Said] = []
    warned = state.warned
    for report in reports:
        if isinstance(report, Warned):
            count = warned.get(report.code, 0)
            if count == MAX_WARNINGS:
                continue
            warned = {**warned, report.code: count + 1}
        kept.append(report)
    if warned is not state.warned:
        state = replace(state, warned=warned)
    return Folded(state, tuple(kept))


def _saying(read: Callable[[Fields], list[Report]]) -> _Handler:
    """Make a handler of a line that leaves no trace in the state."""
    return lambda state, fields, _: (state, read(fields))


def _hello(state: JsonlState, fields: Fields, _: NewId) -> tuple[JsonlState, Sequence[Report]]:
    if state.greeted:
        return state, ()
    can_steer = flag_in(fields, "can_steer", default=False)
    hello = Hello(
        name=text_in(fields, "name", _NAME_BYTES),
        version=text_in(fields, "version", _NAME_BYTES),
        capabilities=Capabilities(can_ask=True, can_steer=can_steer),
    )
    return replace(state, greeted=True), (hello,)


def _ask(state: JsonlState, fields: Fields, new_id: NewId) -> tuple[JsonlState, Sequence[Report]]:
    if not jsonl_asks.is_question(fields):
        message = "a question needs an id and a text; one was ignored"
        return state, (Warned("ask_invalid", message),)
    digest = _digest(id_in(fields))
    if digest in state.asked:
        return state, ()
    if len(state.asked) == MAX_ASKS:
        return state, (Warned("asks_too_many", f"a question after {MAX_ASKS} was ignored"),)
    reports = jsonl_asks.asked(fields, new_id)
    return replace(state, asked=(*state.asked, digest)), reports


def _ask_withdrawn(
    state: JsonlState, fields: Fields, _: NewId
) -> tuple[JsonlState, Sequence[Report]]:
    ref = id_in(fields)
    known = bool(ref) and _digest(ref) in state.asked
    return state, (AskWithdrawn(ref),) if known else ()


def _artifact(state: JsonlState, fields: Fields, _: NewId) -> tuple[JsonlState, Sequence[_Said]]:
    if state.artifacts == MAX_ARTIFACTS:
        message = f"an artifact after {MAX_ARTIFACTS} was not kept"
        return state, (Warned("artifacts_too_many", message),)
    reports = jsonl_artifacts.artifact(fields)
    given = sum(isinstance(report, ArtifactGiven) for report in reports)
    return replace(state, artifacts=state.artifacts + given), reports


def _digest(ref: str) -> str:
    """Return a short name of fixed size: ids may be long, the state may not."""
    return hashlib.blake2b(ref.encode(), digest_size=12).hexdigest()


def _result(state: JsonlState, fields: Fields, _: NewId) -> tuple[JsonlState, Sequence[Report]]:
    if state.handed_in:
        return state, ()
    outcome = choice_in(fields, "outcome", Outcome)
    if outcome is None or outcome not in {Outcome.COMPLETED, Outcome.FAILED}:
        message = "a result needs the outcome completed or failed; one was ignored"
        return state, (Warned("result_invalid", message),)
    text, data = _as_text(fields.get("text")), _as_data(fields.get("data"))
    reports: list[Report] = []
    if data is None:
        message = "the data of the result was dropped: over 64 KiB, or too deep"
        reports.append(Warned("result_data_dropped", message))
    given = ResultGiven(result=Result(text=text, data_json=data or ""), outcome=outcome)
    if outcome is Outcome.FAILED:
        given = ResultGiven(
            result=given.result,
            outcome=outcome,
            cause=choice_in(fields, "cause", Cause) or Cause.REPORTED,
            message=cut(_as_text(fields.get("error")), _MESSAGE_BYTES) or "the worker gave up",
            retryable=flag_in(fields, "retryable", default=True),
        )
    return replace(state, handed_in=True), [*reports, given]


def _as_text(value: object) -> str:
    """Return text as it is, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return compact_json(value) or ""


def _as_data(value: object) -> str | None:
    """Return JSON text, empty for nothing, None for what cannot be kept."""
    if value is None:
        return ""
    text = compact_json(value)
    return None if text is None or is_over(text, _DATA_BYTES) else text


_HANDLERS: Final[dict[str, _Handler]] = {
    "hello": _hello,
    "message": _saying(jsonl_reports.message),
    "progress": _saying(jsonl_reports.progress),
    "tool": _saying(jsonl_reports.tool),
    "usage": _saying(jsonl_reports.usage),
    "ask": _ask,
    "ask_withdrawn": _ask_withdrawn,
    "artifact": _artifact,
    "steer_seen": _saying(jsonl_reports.steer_seen),
    "error": _saying(jsonl_reports.trouble),
    "result": _result,
}
