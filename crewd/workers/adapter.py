"""What an adapter is: a pure fold of a worker's output, and the words it tells the worker.

No adapter does I/O, reads a clock or draws anything by itself. Its state is a small frozen
value; it becomes text (at most 64 KiB) only when it is committed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from crewd.core.effects import StartWorker
from crewd.core.model import Capabilities
from crewd.core.reports import Said, Verdict
from crewd.core.words import OutboxKind
from crewd.workers.lines import Stream

MAX_STATE: Final = 64 * 1024
RESULT_TEXT_BYTES: Final = 64 * 1024
STDERR_TAIL_BYTES: Final = 16 * 1024

NewId = Callable[[], str]
"""Draws the next `ask_` id."""

S = TypeVar("S")


class Line(msgspec.Struct, frozen=True):
    """One line without its line end. An oversize line comes once, as it begins, without data."""

    stream: Stream
    data: bytes
    oversize: bool = False


class Folded(msgspec.Struct, Generic[S], frozen=True):
    """What a line came to."""

    state: S
    reports: tuple[Said, ...] = ()
    """Result texts may be long: the reader keeps those over 64 KiB as artifacts."""
    writes: tuple[tuple[OutboxKind, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How the process ended, and the end of what it said."""

    exit_code: int | None
    signal: int | None
    stdout_tail: str = ""
    tail_truncated: bool = False
    """The tail is not all of stdout."""
    stderr_tail: str = ""


class Adapter(Protocol[S]):
    @property
    def name(self) -> str: ...

    @property
    def wants_stdin(self) -> bool: ...

    @property
    def capabilities(self) -> Capabilities:
        """What its workers can do until they say otherwise."""
        ...

    @property
    def folds(self) -> frozenset[Stream]:
        """The streams whose lines mean something to it; only these are split into lines."""
        ...

    @property
    def mark(self) -> bytes:
        """What every line has that means something; no other line needs to be folded."""
        ...

    @property
    def repeats(self) -> re.Pattern[bytes] | None:
        """How lines begin that say again, or in pieces, what others say whole.

        They are not in the transcript: a secret in pieces could not be masked.
        """
        ...

    def arguments(self, start: StartWorker) -> tuple[str, ...]:
        """Return what follows the task's own command, for this start."""
        ...

    def variables(self, model: str) -> tuple[str, ...]:
        """Return which of the daemon's variables its program is offered, where they are set."""
        ...

    def initial(self) -> S: ...

    def fold(self, state: S, line: Line, new_id: NewId) -> Folded[S]:
        """Take one line. Never raises, whatever the line is."""
        ...

    def end(self, state: S, exit: Exit) -> Verdict:  # noqa: A002 - its name everywhere
        """Judge the attempt. `result` is None if a report has already handed it in."""
        ...

    def encode(self, kind: OutboxKind, body: str) -> bytes:
        """Return an outbox row in the worker's own words: one whole message."""
        ...

    def dump(self, state: S) -> str: ...

    def load(self, text: str) -> S: ...
