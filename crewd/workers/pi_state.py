"""What is remembered between two lines of pi."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from crewd.workers.text import cut

MAX_NOTES: Final = 64
MAX_ASKS: Final = 32
MAX_WARNINGS: Final = 32
_STATE_BYTES: Final = 60 * 1024
_TEXTS: Final = (40 * 1024, 4 * 1024)
"""Bytes of a text that is kept. As JSON it may need six times as much: then the smaller one."""


class Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last message of the agent: it alone tells how a turn has ended."""

    text: str = ""
    cut: bool = False
    """There was more."""
    stop: str = ""
    error: str = ""


class Note(msgspec.Struct, frozen=True):
    """Something the agent was told on the way that it has not read yet."""

    steer_id: str
    digest: str


class PiState(msgspec.Struct, frozen=True, omit_defaults=True):
    greeted: bool = False
    model: str = ""
    last: Said | None = None
    begun: str = ""
    """What was said before an answer was cut at its limit; the rest of it is to come."""
    notes: tuple[Note, ...] = ()
    asks: dict[str, str] = {}
    """The open questions: pi's id of the dialog by the id of the tool's call."""
    resending: bool = False
    """The turn is over but for the notes that were not read; they are on their way again."""
    warned: int = 0


def dump(state: PiState) -> str:
    """Return the state as text of bounded size: a long answer is kept as it begins."""
    text = msgspec.json.encode(state)
    for limit in _TEXTS:
        if len(text) <= _STATE_BYTES:
            break
        text = msgspec.json.encode(_shortened(state, limit))
    return text.decode()


def load(text: str) -> PiState:
    return msgspec.json.decode(text, type=PiState)


def _shortened(state: PiState, limit: int) -> PiState:
    begun = cut(state.begun, limit // 2)
    last = state.last
    if last is not None:
        kept = cut(last.text, limit // 2)
        shorter = last.cut or kept != last.text or begun != state.begun
        last = replace(last, text=kept, cut=shorter, error=cut(last.error, limit // 4))
    return replace(state, last=last, begun=begun)
