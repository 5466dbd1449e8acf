"""The `pi` adapter: the coding agent `pi` in its RPC mode, one process for one attempt.

Its exit code proves nothing: pi ends well whatever its model's provider said. What counts is the
last message of the agent at `agent_settled`, when nothing more follows by itself.
"""

from __future__ import annotations

import re
from typing import Final

from crewd.core.effects import StartWorker
from crewd.core.reports import Verdict
from crewd.core.words import Cause, OutboxKind, Outcome
from crewd.workers import pi_events, pi_keys, pi_reports, pi_start, pi_state, pi_words
from crewd.workers.adapter import Exit, Folded, Line, NewId
from crewd.workers.exits import failed
from crewd.workers.jsonl_values import read_object
from crewd.workers.lines import Stream
from crewd.workers.pi_causes import trouble
from crewd.workers.pi_state import PiState
from crewd.workers.text import cut

_EVENT: Final = re.compile(rb'\{"type":"([a-z_]+)"')
_REPEATING: Final = re.compile(
    rb'\{"type":"(?:message_update|message_start|tool_execution_update|bash_execution_update'
    rb'|turn_end|agent_end)"'
)
_HANDLED: Final = frozenset(name.encode() for name in pi_events.HANDLERS)
_HOPELESS_WORDS: Final = re.compile(
    r"^.*(?:No API key|No models? (?:available|selected)|Model .* not found).*$", re.MULTILINE
)
"""What pi says on stderr when it cannot begin at all."""
_NODE: Final = re.compile(r"^Node\.js v((\d+)\.\S+)\s*\Z", re.MULTILINE)
"""How node ends the story of a program that it could not run."""
_NODE_NEEDED: Final = 22
_WORDS_BYTES: Final = 300


class PiAdapter:
    name = "pi"
    wants_stdin = True
    capabilities = pi_events.CAPABILITIES
    folds = frozenset({Stream.STDOUT})
    mark = b'"type"'
    repeats = _REPEATING

    def arguments(self, start: StartWorker) -> tuple[str, ...]:
        return pi_start.arguments(start)

    def variables(self, model: str) -> tuple[str, ...]:
        return (*pi_keys.OWN, *pi_keys.keys_of(model))

    def initial(self) -> PiState:
        return PiState()

    def fold(self, state: PiState, line: Line, new_id: NewId) -> Folded[PiState]:
        # Only lines that repeat a whole conversation are too long: they say nothing new.
        if line.stream is not Stream.STDOUT or line.oversize:
            return Folded(state)
        # Most lines are pieces of a message that comes whole later: they are not worth reading.
        event = _EVENT.match(line.data)
        if event is not None and event[1] not in _HANDLED:
            return Folded(state)
        fields = read_object(line.data)
        return Folded(state) if fields is None else pi_events.fold(state, fields, new_id)

    def end(self, state: PiState, exit: Exit) -> Verdict:  # noqa: A002, ARG002
        """Judge a process that ended before its turn did."""
        if exit.signal is not None:
            return failed(exit)
        known = _too_old(exit.stderr_tail) or _hopeless(exit.stderr_tail)
        return known or (failed(exit) if exit.exit_code else _ended_early(exit))

    def encode(self, kind: OutboxKind, body: str) -> bytes:  # noqa: ARG002 - the body says it
        return pi_words.encode(body)

    def dump(self, state: PiState) -> str:
        return pi_state.dump(state)

    def load(self, text: str) -> PiState:
        return pi_state.load(text)


def _ended_early(exit: Exit) -> Verdict:  # noqa: A002
    words = (exit.stderr_tail or exit.stdout_tail).strip().rpartition("\n")[2]
    said = f"; its last words: {cut(words, _WORDS_BYTES)}" if words else ""
    return Verdict(
        outcome=Outcome.FAILED,
        cause=Cause.NO_RESULT,
        message=f"pi ended before it had answered{said}",
        retryable=True,
    )


def _too_old(stderr: str) -> Verdict | None:
    node = _NODE.search(stderr)
    if node is None or int(node[2]) >= _NODE_NEEDED:
        return None
    return Verdict(
        outcome=Outcome.FAILED,
        cause=Cause.EXECUTABLE_MISSING,
        message=f"pi needs Node {_NODE_NEEDED} or newer: the first node of PATH is {node[1]}",
    )


def _hopeless(stderr: str) -> Verdict | None:
    found = _HOPELESS_WORDS.search(stderr)
    if found is None:
        return None
    said = found[0].strip().removeprefix("Error: ")
    cause, words, _ = trouble(pi_reports.with_way_out(said))
    known = cause if cause is Cause.AUTH else Cause.MODEL_UNKNOWN
    return Verdict(outcome=Outcome.FAILED, cause=known, message=words)
