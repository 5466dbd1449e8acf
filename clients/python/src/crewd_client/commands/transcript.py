"""What a `pi` worker wrote, line by line, as text for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import cast

from crewd_client.commands.terminal import clean_block, shorten

Fields = Mapping[str, object]

_LINE_CHARACTERS = 500
_ARGUMENT_CHARACTERS = 200
_RESULT_LINES = 20
# Arguments that say best what a tool is used for.
_TELLING = ("command", "path", "file_path", "pattern", "query", "question", "summary")


class Verbatim:
    """Shows bytes as they are."""

    def feed(self, data: bytes) -> bytes:
        return data

    def skip(self) -> None:
        """Take what is fed next as from a later place, within a line."""

    def finish(self) -> bytes:
        return b""


class Transcript(Verbatim):
    """Shows pi's events as they come; lines that are none stay as they are.

    `prompt` tells where the prompt is, which is not shown: it may be long.
    """

    def __init__(self, prompt: str = "") -> None:
        self._prompt = prompt
        self._begun = bytearray()
        self._is_at_start = True
        self._is_mid_line = False

    def feed(self, data: bytes) -> bytes:
        begun = len(self._begun)
        self._begun += data
        if self._begun.find(b"\n", begun) < 0:
            return b""
        *lines, rest = bytes(self._begun).split(b"\n")
        self._begun = bytearray(rest)
        if self._is_mid_line:
            self._is_mid_line = False
            del lines[0]
        return b"".join(self._shown(line, b"\n") for line in lines)

    def skip(self) -> None:
        """Forget the line that was begun, and wait for the next one."""
        self._begun.clear()
        self._is_mid_line = True
        self._is_at_start = False

    def finish(self) -> bytes:
        """Give what the last line says, though nothing ended it."""
        rest = b"" if self._is_mid_line else bytes(self._begun)
        self._begun.clear()
        return self._shown(rest, b"") if rest else b""

    def _shown(self, line: bytes, end: bytes) -> bytes:
        fields = _event(line)
        if fields is None:
            return line + end
        kind = fields["type"]
        if kind == "message_end":
            told = self._message(_fields(fields.get("message")))
        else:
            told = _TOLD.get(str(kind), _nothing)(fields)
        return b"".join(f"{each}\n".encode(errors="replace") for each in told)

    def _message(self, message: Fields) -> Iterator[str]:
        text = _words(message)
        if message.get("role") == "user":
            yield self._heard(text)
        elif message.get("role") == "assistant":
            if text.strip():
                yield text.strip("\n")
            yield from _error(message, "errorMessage")

    def _heard(self, text: str) -> str:
        if not self._is_at_start:
            return f"← {_first_line(text, _LINE_CHARACTERS)}"
        self._is_at_start = False
        where = f" ({self._prompt})" if self._prompt else ""
        return f"prompt: {len(text.encode(errors='replace'))} bytes{where}"


def _event(line: bytes) -> Fields | None:
    """Read an event that pi is known to write."""
    try:
        fields: Fields = _fields(json.loads(line)) if line.startswith(b"{") else {}
    except (ValueError, RecursionError):
        return None
    kind = fields.get("type")
    return fields if isinstance(kind, str) and kind in _KNOWN else None


def _tool_began(fields: Fields) -> Iterator[str]:
    arguments = _fields(fields.get("args"))
    values = (arguments.get(key) for key in (*_TELLING, *arguments))
    said = next((v for v in values if isinstance(v, str) and v.strip()), "")
    said = said or (json.dumps(arguments, ensure_ascii=False) if arguments else "")
    tool = shorten(str(fields.get("toolName")), _ARGUMENT_CHARACTERS)
    yield f"→ {tool} {_first_line(said, _ARGUMENT_CHARACTERS)}".rstrip()


def _tool_ended(fields: Fields) -> Iterator[str]:
    lines = clean_block(_words(_fields(fields.get("result")))).strip().splitlines()
    failed = fields.get("isError") is True
    for number, line in enumerate(lines[:_RESULT_LINES]):
        mark = "✗ " if failed and not number else "  "
        cut = line if len(line) <= _LINE_CHARACTERS else line[: _LINE_CHARACTERS - 1] + "…"
        yield f"{mark}{cut}".rstrip()
    if failed and not lines:
        yield "✗"
    if len(lines) > _RESULT_LINES:
        yield f"  … {len(lines) - _RESULT_LINES} more lines"


def _response(fields: Fields) -> Iterator[str]:
    return iter(()) if fields.get("success") is not False else _error(fields, "error")


def _error(fields: Fields, key: str) -> Iterator[str]:
    said = fields.get(key)
    if isinstance(said, str) and said.strip():
        yield f"error: {_first_line(said, _LINE_CHARACTERS)}"


def _nothing(_: Fields) -> Iterator[str]:
    return iter(())


def _words(message: Fields) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "".join(_texts(cast("list[object]", content) if isinstance(content, list) else []))


def _texts(parts: Iterable[object]) -> Iterator[str]:
    for part in map(_fields, parts):
        text = part.get("text")
        if part.get("type") == "text" and isinstance(text, str):
            yield text


def _fields(value: object) -> Fields:
    return cast("Fields", value) if isinstance(value, dict) else {}


def _first_line(text: str, width: int) -> str:
    first, *more = text.strip().splitlines() or [""]
    return shorten(f"{first} …" if more else first, width)


_TOLD: Mapping[str, Callable[[Fields], Iterator[str]]] = {
    "compaction_end": lambda fields: _error(fields, "errorMessage"),
    "extension_error": lambda fields: _error(fields, "error"),
    "response": _response,
    "tool_execution_end": _tool_ended,
    "tool_execution_start": _tool_began,
}
# The others repeat what these and the messages say, or say nothing of what was done.
_KNOWN = {
    *_TOLD,
    "agent_end",
    "agent_settled",
    "agent_start",
    "auto_retry_end",
    "auto_retry_start",
    "bash_execution_update",
    "compaction_start",
    "extension_ui_request",
    "message_end",
    "message_start",
    "message_update",
    "queue_update",
    "session",
    "summarization_retry_attempt_start",
    "summarization_retry_finished",
    "summarization_retry_scheduled",
    "tool_execution_update",
    "turn_end",
    "turn_start",
}
