"""Filters of lists and watches, as the store takes them and for one row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os.path import normpath
from typing import TypeVar

from crewd.core.errors import CrewdError, Reason, Violation
from crewd.core.model import Ask, Run
from crewd.rpc import enums
from crewd.rpc.payloads import KINDS
from crewd.store import AskFilter, RunFilter
from crewd.v1 import ask_service_pb2, run_pb2

S = TypeVar("S")


def run_filter(message: run_pb2.RunFilter) -> RunFilter:
    return RunFilter(
        statuses=_statuses(message.statuses, enums.TO_RUN_STATUS),
        cwd=normal_path(message.cwd),
        labels=dict(message.labels),
    )


def matches_run(run: Run, *, which: RunFilter) -> bool:
    return (
        (not which.statuses or run.status in which.statuses)
        and (not which.cwd or run.spec.cwd == which.cwd)
        and which.labels.items() <= dict(run.spec.labels).items()
    )


def ask_filter(message: ask_service_pb2.AskFilter) -> AskFilter:
    return AskFilter(
        run_id=message.run_id,
        statuses=_statuses(message.statuses, enums.TO_ASK_STATUS),
        cwd=normal_path(message.cwd),
    )


def matches_ask(ask: Ask, *, which: AskFilter) -> bool:
    return (
        (not which.statuses or ask.status in which.statuses)
        and (not which.run_id or ask.run_id == which.run_id)
        and (not which.cwd or ask.workspace_cwd == which.cwd)
    )


def event_kinds(kinds: Iterable[str]) -> frozenset[str]:
    """Return the kinds to filter by; those there are not are refused, all at once."""
    violations = [
        Violation(f"kinds[{index}]", f"there is no kind of event {kind!r}")
        for index, kind in enumerate(kinds)
        if kind not in KINDS
    ]
    if violations:
        raise CrewdError(Reason.SPEC_INVALID, violations[0].description, violations=violations)
    return frozenset(kinds)


def normal_path(path: str) -> str:
    """Return the one spelling that directories are stored and compared in; empty stays empty."""
    return normpath(path) if path else ""


def _statuses(numbers: Iterable[int], known: Mapping[int, S]) -> frozenset[S]:
    numbers = list(numbers)
    violations = [
        Violation(f"filter.statuses[{index}]", f"{number} is not a status")
        for index, number in enumerate(numbers)
        if number not in known
    ]
    if violations:
        raise CrewdError(Reason.SPEC_INVALID, violations[0].description, violations=violations)
    return frozenset(known[number] for number in numbers)
