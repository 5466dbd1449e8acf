"""What pi says: one line, its reports, and what is to be written back at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from msgspec.structs import replace

from crewd.core.messages import prompt_message
from crewd.core.model import Capabilities, Result
from crewd.core.reports import (
    AskWithdrawn,
    Hello,
    Message,
    ProviderTrouble,
    Report,
    SessionRenewed,
    SteerSeen,
    TurnEnded,
    TurnStop,
    Warned,
)
from crewd.core.words import Cause, OutboxKind
from crewd.workers import pi_reports, pi_words
from crewd.workers.adapter import Folded, NewId
from crewd.workers.jsonl_values import Fields, flag_in, id_in, text_in
from crewd.workers.pi_causes import MESSAGE_BYTES, trouble
from crewd.workers.pi_dialogs import dialog
from crewd.workers.pi_state import MAX_NOTES, MAX_WARNINGS, Note, PiState, Said
from crewd.workers.text import cut

CAPABILITIES: Final = Capabilities(can_ask=True, can_steer=True, can_interrupt=True)
_STOPS: Final[Mapping[str, TurnStop]] = {
    "length": TurnStop.LENGTH,
    "error": TurnStop.FAILED,
    "aborted": TurnStop.ABORTED,
}
"""Every other reason is that the agent has said what it had to say."""
_ABORTED: Final = frozenset({"This operation was aborted", "Request aborted"})
"""Errors that are an abort while a tool was at work."""
_HEARS: Final = frozenset({TurnStop.DONE, TurnStop.LENGTH})
"""Ends of a turn after which the agent can still be told something."""

Handler = Callable[[PiState, Fields, NewId], Folded[PiState]]


def fold(state: PiState, fields: Fields, new_id: NewId) -> Folded[PiState]:
    kind = fields.get("type")
    handler = HANDLERS.get(kind) if isinstance(kind, str) else None
    if handler is None:
        return Folded(state)
    if state.greeted:
        return handler(state, fields, new_id)
    folded = handler(replace(state, greeted=True), fields, new_id)
    return Folded(folded.state, (_hello(""), *folded.reports), folded.writes)


def _warned(state: PiState, code: str, message: str) -> Folded[PiState]:
    """Warn, but not for ever: a worker may do the same thing wrong all the time."""
    if state.warned >= MAX_WARNINGS:
        return Folded(state)
    told = Warned(code, cut(message.strip(), MESSAGE_BYTES))
    return Folded(replace(state, warned=state.warned + 1), (told,))


def _hello(model: str) -> Hello:
    return Hello(name="pi", model=model, capabilities=CAPABILITIES)


def _message_end(state: PiState, fields: Fields, _: NewId) -> Folded[PiState]:
    message = fields.get("message")
    if not isinstance(message, dict):
        return Folded(state)
    said = cast("Fields", message)
    match said.get("role", "assistant"):
        case "assistant":
            return _assistant(state, said)
        case "user":
            return _user(state, said)
        case "toolResult":
            return Folded(state, pi_reports.used(said, turns=0))
        case _:
            return Folded(state)


def _assistant(state: PiState, message: Fields) -> Folded[PiState]:
    reports: list[Report] = []
    model = pi_reports.model_in(message)
    if model and model != state.model:
        reports.append(_hello(model))
    text = pi_reports.words_in(message)
    if text.strip():
        reports.append(Message(text))
    reports += pi_reports.used(message, turns=1)
    stop = text_in(message, "stopReason", 64)
    error = text_in(message, "errorMessage", MESSAGE_BYTES * 2)
    if stop == "error" and error not in _ABORTED:
        cause, words, _ = trouble(error)
        reports.append(ProviderTrouble(cause=cause, message=words))
    last = Said(text=text, stop=stop, error=error)
    return Folded(replace(state, last=last, model=model or state.model), tuple(reports))


def _user(state: PiState, message: Fields) -> Folded[PiState]:
    """Recognize the notes that the agent reads now."""
    if not state.notes:
        return Folded(state)
    known_by = pi_words.digest(pi_reports.words_in(message))
    seen = [note for note in state.notes if note.digest == known_by]
    if not seen:
        return Folded(state)
    if not state.resending:
        # Two notes of the same words are read one after the other.
        seen = seen[:1]
    left = tuple(note for note in state.notes if note not in seen)
    reports = tuple(SteerSeen(note.steer_id) for note in seen)
    return Folded(replace(state, notes=left, resending=False), reports)


def _settled(state: PiState, _: Fields, __: NewId) -> Folded[PiState]:
    """End the turn, unless there are notes that the agent can still be told."""
    stop = _stop_of(state)
    if state.notes and not state.resending and stop in _HEARS:
        take_back = (OutboxKind.REPLY, pi_words.TAKE_BACK)
        return Folded(replace(state, resending=True), (), (take_back,))
    return _ended(state)


def _stop_of(state: PiState) -> TurnStop:
    if state.last is None:
        return TurnStop.DONE
    if state.last.stop == "error" and state.last.error in _ABORTED:
        return TurnStop.ABORTED
    return _STOPS.get(state.last.stop, TurnStop.DONE)


def _ended(state: PiState) -> Folded[PiState]:
    stop, last = _stop_of(state), state.last or Said()
    after = replace(state, last=None, begun="", notes=(), asks={}, resending=False)
    if stop is TurnStop.FAILED:
        cause, words, retryable = trouble(last.error)
        return Folded(after, (_failed(cause, words, retryable=retryable),))
    text = state.begun + last.text
    if stop is TurnStop.LENGTH:
        after = replace(after, begun=text)
    ended = TurnEnded(stop=stop, result=Result(text=text, truncated=last.cut))
    return Folded(after, (ended,))


def _failed(cause: Cause, message: str, *, retryable: bool) -> TurnEnded:
    return TurnEnded(stop=TurnStop.FAILED, cause=cause, message=message, retryable=retryable)


def _response(state: PiState, fields: Fields, _: NewId) -> Folded[PiState]:
    command, command_id = text_in(fields, "command", 64), id_in(fields)
    good = flag_in(fields, "success", default=True)
    note = pi_words.note_in(command_id)
    if command_id == pi_words.RESEND:
        return _resend(state, fields)
    if good and note is not None and len(state.notes) < MAX_NOTES:
        return Folded(replace(state, notes=(*state.notes, Note(*note))))
    if good:
        renewed = command_id == pi_words.RENEW and not _is_cancelled(fields)
        return Folded(state, (SessionRenewed(),) if renewed else ())
    error = text_in(fields, "error", MESSAGE_BYTES * 2)
    if command != "prompt":
        return _warned(state, "pi_refused", f"pi refused {command}: {error}")
    if state.resending:
        return _ended(state)
    # Nothing follows a prompt that was not even begun.
    cause, words, retryable = trouble(pi_reports.with_way_out(error))
    return Folded(replace(state, last=None), (_failed(cause, words, retryable=retryable),))


def _is_cancelled(fields: Fields) -> bool:
    data = fields.get("data")
    return isinstance(data, dict) and cast("Fields", data).get("cancelled") is True


def _resend(state: PiState, fields: Fields) -> Folded[PiState]:
    """Say the notes that pi gives back as one prompt, which begins another turn."""
    data = fields.get("data")
    given = cast("Fields", data).get("steering") if isinstance(data, dict) else None
    texts = [text for text in cast("list[object]", given or []) if isinstance(text, str)]
    if not state.resending:
        return Folded(state)
    if not texts:
        return _ended(state)
    text = "\n\n".join(texts)
    known_by = pi_words.digest(text)
    notes = tuple(Note(note.steer_id, known_by) for note in state.notes)
    prompt = (OutboxKind.PROMPT, prompt_message(text))
    return Folded(replace(state, notes=notes), (), (prompt,))


def _retry_begins(state: PiState, _: Fields, __: NewId) -> Folded[PiState]:
    return Folded(state, (), ((OutboxKind.REPLY, pi_words.ABORT_RETRY),))


def _compaction_end(state: PiState, fields: Fields, _: NewId) -> Folded[PiState]:
    error = text_in(fields, "errorMessage", MESSAGE_BYTES)
    if error:
        return _warned(state, "compaction_failed", error)
    result = fields.get("result")
    used = pi_reports.used(cast("Fields", result), turns=0) if isinstance(result, dict) else ()
    return Folded(state, used)


def _extension_error(state: PiState, fields: Fields, _: NewId) -> Folded[PiState]:
    return _warned(state, "extension_error", text_in(fields, "error", MESSAGE_BYTES))


def _tool_begins(state: PiState, fields: Fields, _: NewId) -> Folded[PiState]:
    return Folded(state, pi_reports.tool_began(fields))


def _tool_ends(state: PiState, fields: Fields, _: NewId) -> Folded[PiState]:
    call = pi_reports.call_in(fields)
    reports = pi_reports.tool_done(fields)
    if call not in state.asks:
        return Folded(state, reports)
    asks = {known: ref for known, ref in state.asks.items() if known != call}
    # A question whose tool has come back has nobody to answer; most are answered by now.
    return Folded(replace(state, asks=asks), (AskWithdrawn(state.asks[call]), *reports))


HANDLERS: Final[Mapping[str, Handler]] = {
    "agent_settled": _settled,
    "agent_start": lambda state, _, __: Folded(state),
    "auto_retry_start": _retry_begins,
    "compaction_end": _compaction_end,
    "extension_error": _extension_error,
    "extension_ui_request": dialog,
    "message_end": _message_end,
    "response": _response,
    "tool_execution_end": _tool_ends,
    "tool_execution_start": _tool_begins,
}
"""Every other event repeats what these say, or says nothing that is wanted."""
