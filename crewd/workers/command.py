"""The `command` adapter: any program. Exit 0 is success, the end of stdout is the result."""

from __future__ import annotations

from crewd.core.effects import StartWorker
from crewd.core.model import Capabilities, Result
from crewd.core.reports import Verdict
from crewd.core.words import OutboxKind, Outcome
from crewd.workers.adapter import Exit, Folded, Line, NewId
from crewd.workers.exits import failed
from crewd.workers.lines import Stream


class CommandAdapter:
    name = "command"
    wants_stdin = False
    capabilities = Capabilities()
    folds: frozenset[Stream] = frozenset()
    mark = b""
    repeats = None

    def arguments(self, start: StartWorker) -> tuple[str, ...]:  # noqa: ARG002
        """Add nothing: the task's command says it all."""
        return ()

    def variables(self, model: str) -> tuple[str, ...]:  # noqa: ARG002
        """Take nothing: a task names what it needs in `env_from`."""
        return ()

    def initial(self) -> None:
        return None

    def fold(self, state: None, line: Line, new_id: NewId) -> Folded[None]:  # noqa: ARG002
        return Folded(state)

    def end(self, state: None, exit: Exit) -> Verdict:  # noqa: A002, ARG002
        if exit.exit_code != 0 or exit.signal is not None:
            return failed(exit)
        return Verdict(
            outcome=Outcome.COMPLETED,
            result=Result(text=exit.stdout_tail, truncated=exit.tail_truncated),
        )

    def encode(self, kind: OutboxKind, body: str) -> bytes:  # noqa: ARG002
        """Say nothing: its stdin is /dev/null."""
        return b""

    def dump(self, state: None) -> str:  # noqa: ARG002
        return "{}"

    def load(self, text: str) -> None:  # noqa: ARG002
        return None
