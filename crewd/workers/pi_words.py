"""What pi is told: the bodies of outbox rows in the words of its RPC mode, one command a line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

Fields = Mapping[str, object]

RESEND: Final = "crewd/resend"
"""The id under which pi gives back the notes that it has not read."""
RENEW: Final = "crewd/renew"
"""The id under which pi tells that it has forgotten what was said."""
_NOTE: Final = "crewd/note/"

ABORT_RETRY: Final = '{"type":"abort_retry"}'
"""A body of our own: pi is not to try again by itself, its run decides on that.

The setting that switches this off would be written into the user's own settings.
"""
TAKE_BACK: Final = '{"type":"take_back"}'
"""A body of our own: give back the notes that were not read."""


def dismissal(ref: str) -> str:
    """Return the body of our own that closes a dialog which nobody sees."""
    return json.dumps({"type": "dismissal", "id": ref})


def refusal(ref: str, message: str) -> str:
    """Return the body of an answer to a result that could not even be read."""
    return json.dumps({"type": "reply", "id": ref, "taken": False, "message": message})


def encode(body: str) -> bytes:
    fields: Fields = msgspec.json.decode(body, type=dict[str, object])
    commands = _COMMANDS[str(fields["type"])](fields)
    return b"".join(msgspec.json.encode(command) + b"\n" for command in commands)


def digest(text: str) -> str:
    """Return what a note is recognized by when pi has read it."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=12).hexdigest()


def note_in(command_id: str) -> tuple[str, str] | None:
    """Return the id and the digest of the note that pi has queued under this id."""
    if not command_id.startswith(_NOTE):
        return None
    known_by, _, steer_id = command_id.removeprefix(_NOTE).partition("/")
    return steer_id, known_by


def _prompt(fields: Fields) -> list[Fields]:
    """Let the prompt follow where the agent still works: it is refused otherwise."""
    message = {"type": "prompt", "message": fields["text"], "streamingBehavior": "followUp"}
    return [message]


def _steer(fields: Fields) -> list[Fields]:
    text = str(fields["text"])
    command_id = f"{_NOTE}{digest(text)}/{fields['id']}"
    return [{"type": "steer", "id": command_id, "message": text}]


def _response(fields: Fields) -> list[Fields]:
    """Answer the extension with everything that is said; it finds its words."""
    said = {key: value for key, value in fields.items() if key not in {"type", "id"}}
    value = msgspec.json.encode(said).decode()
    return [{"type": "extension_ui_response", "id": fields["id"], "value": value}]


def _dismissal(fields: Fields) -> list[Fields]:
    return [{"type": "extension_ui_response", "id": fields["id"], "cancelled": True}]


def _stop(_: Fields) -> list[Fields]:
    """Stop for good: what is still queued would start again after the abort."""
    return [{"type": "clear_queue"}, {"type": "abort"}]


def _next(fields: Fields) -> list[Fields]:
    """Tell the extension what the programs of this process are to know of themselves."""
    value = msgspec.json.encode({"variables": fields.get("variables", {})}).decode()
    return [{"type": "extension_ui_response", "id": fields["id"], "value": value}]


_COMMANDS: Final[Mapping[str, Callable[[Fields], list[Fields]]]] = {
    "prompt": _prompt,
    "steer": _steer,
    "answer": _response,
    "reply": _response,
    "dismissal": _dismissal,
    "stop": _stop,
    "renew": lambda _: [{"type": "new_session", "id": RENEW}],
    "next": _next,
    "abort_retry": lambda _: [{"type": "abort_retry"}],
    "take_back": lambda _: [{"type": "clear_queue", "id": RESEND}],
}
