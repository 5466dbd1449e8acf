"""The dialogs that pi opens: questions and results of our own extension; others see nobody."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast

from msgspec.structs import replace

from crewd.core.model import Result
from crewd.core.reports import ArtifactGiven, Report, ResultGiven, SessionOpened, Warned
from crewd.core.words import OutboxKind, Outcome
from crewd.workers import jsonl_asks, pi_words
from crewd.workers.adapter import Folded, NewId
from crewd.workers.jsonl_artifacts import CONTROL, name_problem
from crewd.workers.jsonl_values import Fields, compact_json, id_in, read_object, text_in
from crewd.workers.pi_reports import call_in
from crewd.workers.pi_state import MAX_ASKS, PiState
from crewd.workers.text import is_over

_WAITING: Final = frozenset({"select", "confirm", "input", "editor"})
"""Dialogs that an extension waits for."""
_DATA_BYTES: Final = 64 * 1024
_PATH_BYTES: Final = 4096
_TEXT_BYTES: Final = 1024
_MAX_ARTIFACTS: Final = 32


def dialog(state: PiState, fields: Fields, new_id: NewId) -> Folded[PiState]:
    ref, method = id_in(fields), text_in(fields, "method", 64)
    if not ref or method not in _WAITING:
        return Folded(state)
    title, payload = fields.get("title"), _payload(fields)
    if method == "input" and payload is not None and title == "crewd:ask":
        return _ask(state, ref, payload, new_id)
    if method == "input" and payload is not None and title == "crewd:submit_result":
        return _submit(state, ref, payload)
    if method == "input" and title == "crewd:next_task":
        return Folded(state, (SessionOpened(ref),))
    return _dismissed(state, ref)


def _payload(fields: Fields) -> Fields | None:
    text = fields.get("placeholder")
    return read_object(text.encode("utf-8", "replace")) if isinstance(text, str) else None


def _dismissed(state: PiState, ref: str) -> Folded[PiState]:
    return Folded(state, (), ((OutboxKind.REPLY, pi_words.dismissal(ref)),))


def _ask(state: PiState, ref: str, payload: Fields, new_id: NewId) -> Folded[PiState]:
    asked: dict[str, object] = {
        "id": ref,
        "question": payload.get("question"),
        "options": payload.get("options"),
    }
    if payload.get("timeout_s") is not None:
        # Who says how long it can wait can go on without.
        asked |= {"timeout_s": payload["timeout_s"], "on_timeout": "continue"}
    if not jsonl_asks.is_question(asked) or len(state.asks) >= MAX_ASKS:
        return _dismissed(state, ref)
    call = call_in(payload, "call")
    asks = {**state.asks, call: ref} if call else state.asks
    return Folded(replace(state, asks=asks), tuple(jsonl_asks.asked(asked, new_id)))


def _submit(state: PiState, ref: str, payload: Fields) -> Folded[PiState]:
    summary, data = payload.get("summary"), payload.get("data")
    text = "" if data is None else compact_json(data)
    if not isinstance(summary, str) or not summary.strip():
        return _refused(state, ref, "not taken: it needs a summary")
    if text is None or is_over(text, _DATA_BYTES):
        problem = "not taken: the data is over 64 KiB or too deep; write it to a file instead"
        return _refused(state, ref, problem)
    given = ResultGiven(
        ref=ref,
        result=Result(text=summary, data_json=text),
        outcome=Outcome.COMPLETED,
    )
    return Folded(state, (*_artifacts(payload), given))


def _refused(state: PiState, ref: str, message: str) -> Folded[PiState]:
    return Folded(state, (), ((OutboxKind.REPLY, pi_words.refusal(ref, message)),))


def _artifacts(payload: Fields) -> Iterable[Report | ArtifactGiven]:
    given = payload.get("artifacts")
    for item in cast("list[object]", given)[:_MAX_ARTIFACTS] if isinstance(given, list) else ():
        fields = cast("Fields", item) if isinstance(item, dict) else {"path": item}
        path = text_in(fields, "path", _PATH_BYTES)
        if path.strip():
            name = text_in(fields, "name", _TEXT_BYTES) or path.rstrip("/").rpartition("/")[2]
            yield _artifact(name, path, text_in(fields, "description", _TEXT_BYTES))


def _artifact(name: str, path: str, description: str) -> Warned | ArtifactGiven:
    problem = "it has control characters" if CONTROL.search(name) else name_problem(name)
    if problem:
        message = f"an artifact was not kept: its name {name!r}: {problem}"
        return Warned("artifact_invalid", message)
    return ArtifactGiven(name=name, path=path, description=description)
