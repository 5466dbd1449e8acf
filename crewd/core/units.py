"""Instants and spans as whole microseconds: exact, comparable, one column wide."""

from __future__ import annotations

from typing import Final, NewType

Instant = NewType("Instant", int)
"""A UTC instant: microseconds since 1970-01-01T00:00:00Z."""

Span = NewType("Span", int)
"""A length of time in microseconds."""

EPOCH: Final = Instant(0)
SECOND: Final = Span(1_000_000)
MINUTE: Final = Span(60 * SECOND)


def seconds(count: float) -> Span:
    return Span(round(count * SECOND))


def later(instant: Instant, span: Span) -> Instant:
    return Instant(instant + span)
