"""A model on loopback that says what the prompt tells it to: no network, no chance, no key.

It speaks the OpenAI wire of chat completions, as far as `pi` needs it. What it answers depends on
the request alone: the last marker `[[name]]` or `[[name:argument]]` in what the user said picks
one of the behaviours in `_ANSWERS`, so one server serves any number of agents at once.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, cast

MARK: Final = re.compile(r"\[\[([a-z]+)(?::(.*?))?\]\]", re.DOTALL)
ROLE: Final = re.compile(r"^Role: (\S+)$", re.MULTILINE)
"""As crewd's prompts say it."""
USAGE: Final = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
PLAIN: Final = "Hello from the scripted model."
_KINDS: Final = {401: "authentication_error", 429: "rate_limit_error"}

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Say:
    """Words, and why they end."""

    pieces: Sequence[str] = ()
    why: str = "stop"


@dataclass(frozen=True)
class Use:
    """A call of a tool."""

    tool: str
    arguments: Json


@dataclass(frozen=True)
class Refuse:
    """An HTTP status instead of an answer."""

    status: int
    message: str = ""


@dataclass(frozen=True)
class Cut:
    """Half an answer, then the end of the connection."""

    pieces: Sequence[str]


@dataclass(frozen=True)
class Wait:
    """Nothing for so many seconds, then the answer; None is for ever."""

    seconds: float | None


Answer = Say | Use | Refuse | Cut | Wait


@dataclass(frozen=True)
class Asked:
    """What a request comes to."""

    argument: str
    results: Sequence[str]
    """What tools gave back since the last word of the user."""
    said_since: int
    """Messages of the user after the one with the marker: reminders, notes."""


def _tool(tool: str, arguments: Callable[[str], Json]) -> Callable[[Asked], Answer]:
    def answer(asked: Asked) -> Answer:
        if asked.results:
            return Say(["The tool said: ", asked.results[-1].strip()[:400]])
        return Use(tool, arguments(asked.argument))

    return answer


def _submit(asked: Asked) -> Answer:
    """Hand in one after the other of `a|b|c`, as long as they are refused."""
    wanted = asked.argument.split("|")
    if len(asked.results) >= len(wanted):
        return Say(["I have handed in."])
    data = json.loads(wanted[len(asked.results)])
    return Use("submit_result", {"summary": "It is done.", "data": data})


def _late(asked: Asked) -> Answer:
    """Forget to hand in until reminded."""
    return _submit(asked) if asked.said_since else Say(["I am done."])


def _length(asked: Asked) -> Answer:
    if asked.said_since < int(asked.argument or 1):
        return Say([f"Part {asked.said_since + 1}, "], why="length")
    return Say(["and the end."])


_ANSWERS: Final[Mapping[str, Callable[[Asked], Answer]]] = {
    "plain": lambda asked: Say(re.findall(r"\S+\s*", asked.argument or PLAIN)),
    "spell": lambda asked: Say(re.findall(r"(?s).{1,4}", asked.argument)),
    "empty": lambda _: Say(),
    "long": lambda asked: Say([f"word{i} " for i in range(int(asked.argument or 200))]),
    "length": _length,
    "tool": _tool("bash", lambda command: {"command": command or "echo hello-from-tool"}),
    "write": _tool("write", lambda path: {"path": path, "content": "by the scripted model\n"}),
    "ask": _tool("ask", lambda text: json.loads(text) if text[:1] == "{" else {"question": text}),
    "submit": _submit,
    "late": _late,
    "error": lambda asked: Refuse(*_refusal(asked.argument)),
    "drop": lambda _: Cut(["This answer is cut "]),
    "slow": lambda asked: Wait(float(asked.argument or 2)),
    "hang": lambda _: Wait(None),
}


def _refusal(argument: str) -> tuple[int, str]:
    status, _, message = argument.partition(" ")
    return int(status or 400), message


class ScriptedModel:
    """`base_url` is what an agent is told; `requests` is what it sent.

    `by_role` has a marker for each role whose prompts have none themselves.
    """

    def __init__(self, by_role: Mapping[str, str] | None = None) -> None:
        self._by_role = by_role or {}
        self.requests: list[Json] = []
        self.released = threading.Event()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @contextmanager
    def serving(self) -> Generator[ScriptedModel]:
        self._thread.start()
        try:
            yield self
        finally:
            self.released.set()
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    def answer(self, request: Json) -> Answer:
        self.requests.append(request)
        asked_for, asked = _read(request, self._by_role)
        answer = _ANSWERS[asked_for](asked)
        if isinstance(answer, Wait):
            self.released.wait(answer.seconds)
            return Say(["A slow answer."])
        return answer


def _read(request: Json, by_role: Mapping[str, str]) -> tuple[str, Asked]:
    messages: list[Json] = request.get("messages") or []
    users = [
        (i, _marked(_text(m), by_role)) for i, m in enumerate(messages) if m.get("role") == "user"
    ]
    marked = [(i, found[-1]) for i, text in users if (found := MARK.findall(text))]
    marked_at, (name, argument) = marked[-1] if marked else (0, ("plain", ""))
    last_user = users[-1][0] if users else 0
    results = [_text(m) for m in messages[last_user:] if m.get("role") == "tool"]
    said_since = sum(1 for i, _ in users if i > marked_at)
    return name, Asked(argument, results, said_since)


def _marked(text: str, by_role: Mapping[str, str]) -> str:
    role = ROLE.search(text)
    return text if role is None or MARK.search(text) else f"{text}\n{by_role.get(role[1], '')}"


def _text(message: Json) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or ())


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: ScriptedModel) -> None:
        self.model = model
        super().__init__(("127.0.0.1", 0), _Handler)


@dataclass
class _Chunks:
    """Builds the events of one answer."""

    model: str
    number: int
    """Of the request in its conversation."""
    made: list[bytes] = field(default_factory=list[bytes])

    def add(self, delta: Json, why: str | None = None) -> None:
        chunk: dict[str, Any] = {
            "id": "chatcmpl-scripted",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": self.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": why}],
        }
        if why:
            chunk["usage"] = USAGE
        self.made.append(b"data: " + json.dumps(chunk).encode() + b"\n\n")

    def of(self, answer: Say | Use | Cut) -> list[bytes]:
        self.add({"role": "assistant", "content": ""})
        if isinstance(answer, Use):
            call = {"name": answer.tool, "arguments": json.dumps(answer.arguments)}
            entry = {"index": 0, "id": f"call_{self.number}", "type": "function", "function": call}
            self.add({"tool_calls": [entry]})
            self.add({}, "tool_calls")
        else:
            for piece in answer.pieces:
                self.add({"content": piece})
            if isinstance(answer, Say):
                self.add({}, answer.why)
        if not isinstance(answer, Cut):
            self.made.append(b"data: [DONE]\n\n")
        return self.made


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: pytest's output is for people."""

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        request: Json = json.loads(self.rfile.read(size))
        # An agent that was ended does not wait for its answer.
        with suppress(BrokenPipeError, ConnectionResetError):
            answer = cast("_Server", self.server).model.answer(request)
            if isinstance(answer, Refuse):
                self._refuse(answer)
            elif not isinstance(answer, Wait):
                self._stream(_Chunks(request["model"], len(request["messages"])).of(answer))

    def _refuse(self, answer: Refuse) -> None:
        default = "invalid_request_error" if answer.status < 500 else "server_error"
        error = {
            "message": answer.message or f"scripted error {answer.status}",
            "type": _KINDS.get(answer.status, default),
            "code": f"scripted_{answer.status}",
            "param": None,
        }
        data = json.dumps({"error": error}).encode()
        self.send_response(answer.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, chunks: Sequence[bytes]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for chunk in chunks:
            self.wfile.write(chunk)
            self.wfile.flush()
