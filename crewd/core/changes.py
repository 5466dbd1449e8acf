"""The rows that a drain of stimuli changed, each once, as they are to be stored."""

from __future__ import annotations

from collections.abc import Sequence

from crewd.core.model import (
    Artifact,
    Ask,
    Attempt,
    Outbox,
    Run,
    Task,
)
from crewd.core.values import record


@record
class Changes:
    """`added_*` rows are new; the others exist. The log encodes them before it returns."""

    run: Run | None = None
    run_is_new: bool = False
    added_tasks: Sequence[Task] = ()
    tasks: Sequence[Task] = ()
    added_attempts: Sequence[Attempt] = ()
    attempts: Sequence[Attempt] = ()
    asks: Sequence[Ask] = ()
    """New or changed."""
    artifacts: Sequence[Artifact] = ()
    """New ones."""
    outbox: Sequence[Outbox] = ()
    """New messages."""
    outbox_taken: Sequence[tuple[str, int, int]] = ()
    """(task id, attempt, seq): every message of the attempt up to seq is to be removed."""
    delete_run: bool = False
    """The run and all that belongs to it is to be removed; only its last event stays."""
