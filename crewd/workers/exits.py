"""Why a process that handed in nothing failed, read off its exit status and its last words."""

from __future__ import annotations

import re
import signal
from typing import Final

from crewd.core.reports import Verdict
from crewd.core.words import Cause, Outcome
from crewd.workers.adapter import Exit
from crewd.workers.text import cut

_LAST_LINE_BYTES: Final = 500
_NO_SPACE: Final = "No space left on device"
_STYLING: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def failed(exit: Exit) -> Verdict:  # noqa: A002
    """Return the verdict on an exit that counts as a failure."""
    cause = Cause.EXIT if exit.signal is None else Cause.SIGNAL
    full = _NO_SPACE in exit.stderr_tail
    return Verdict(
        outcome=Outcome.FAILED,
        cause=Cause.DISK if full else cause,
        message=_message(exit),
        retryable=not full,
    )


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _message(exit: Exit) -> str:  # noqa: A002
    if exit.signal is not None:
        how = f"killed by {signal_name(exit.signal)}"
    elif exit.exit_code is not None:
        how = f"exited with code {exit.exit_code}"
    else:
        how = "ended without an exit code"
    said = _last_line(exit.stderr_tail)
    return f"{how}: {said}" if said else how


def _last_line(text: str) -> str:
    for line in reversed(text.splitlines()):
        plain = "".join(c for c in _STYLING.sub("", line) if c.isprintable()).strip()
        if plain:
            return cut(plain, _LAST_LINE_BYTES)
    return ""
