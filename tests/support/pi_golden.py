"""Recorded streams of `pi`, and what the adapter makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Final, cast

import msgspec

from crewd.core.effects import StartWorker
from crewd.core.reports import ArtifactGiven, Report
from crewd.core.spec import AgentSpec
from crewd.core.words import OutboxKind
from crewd.workers.adapter import Folded, Line
from crewd.workers.lines import Stream
from crewd.workers.pi import PiAdapter
from crewd.workers.pi_state import PiState
from tests.support.builders import a_start, a_task

DATA: Final = Path(__file__).parents[1] / "data" / "pi"


def a_pi_start(agent: AgentSpec | None = None, model: str = "") -> StartWorker:
    return replace(a_start(a_task("a")), adapter="pi", agent=agent, model=model)


def fold(lines: Sequence[bytes], state: PiState | None = None) -> Folded[PiState]:
    """Fold lines in order; return the last state, all reports and all writes."""
    adapter, drawn = PiAdapter(), count(1)
    state = state or adapter.initial()
    reports: list[Report | ArtifactGiven] = []
    writes: list[tuple[OutboxKind, str]] = []
    for data in lines:
        line = Line(Stream.STDOUT, data)
        folded = adapter.fold(state, line, lambda: f"ask_{next(drawn)}")
        state = folded.state
        reports += folded.reports
        writes += folded.writes
    return Folded(state, tuple(reports), tuple(writes))


def golden(path: Path) -> str:
    """Return the reports of a recorded stream, one a line, then what is written back.

    Fields that say nothing are left out: one that is new does not change what was recorded.
    """
    folded = fold(path.read_bytes().splitlines())
    told: list[list[object]] = [[type(r).__name__, _telling(r)] for r in folded.reports]
    told.extend(["write", kind, body] for kind, body in folded.writes)
    return "".join(msgspec.json.encode(item).decode() + "\n" for item in told)


def _telling(value: object) -> object:
    plain: object = msgspec.to_builtins(value)
    if not isinstance(plain, dict):
        return plain
    fields = cast("dict[str, object]", plain)
    kept = {key: _telling(inner) for key, inner in fields.items()}
    return {key: inner for key, inner in kept.items() if inner}
