"""All checks, one after the other."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final

from crewd.doctor import (
    catalog,
    database,
    disk,
    limits,
    orphans,
    places,
    processes,
    programs,
    service,
    settings,
    versions,
)
from crewd.doctor.finding import Check, Finding, Place, error
from crewd.refusal import Refusal

_AREAS: Final = (
    versions,
    places,
    processes,
    orphans,
    service,
    disk,
    database,
    limits,
    programs,
    settings,
    catalog,
)


def examine(place: Place) -> Iterator[Finding]:
    """Make every check; one that cannot look is a finding itself."""
    for area in _AREAS:
        for check in area.CHECKS:
            yield from _made(area.__name__.rpartition(".")[2], check, place)


def _made(area: str, check: Check, place: Place) -> Iterator[Finding]:
    try:
        yield from check(place)
    except (OSError, sqlite3.Error, ValueError, Refusal) as problem:
        yield error(
            id=f"doctor.{area}",
            message=f"the check `{getattr(check, '__name__', area)}` could not look: {problem}",
            details={"area": area},
        )
