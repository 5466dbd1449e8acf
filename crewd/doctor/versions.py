"""What crewd runs on: Python, SQLite and the packages it needs."""

from __future__ import annotations

import platform
import re
import sqlite3
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Final

from crewd.doctor.finding import Check, Finding, Place, error, info, ok, quoted

Version = tuple[int, ...]

_SQLITE_LEAST: Final[Version] = (3, 37)
"""The first with STRICT tables."""
_SQLITE_FIXED: Final[tuple[tuple[Version, Version], ...]] = (
    ((3, 51, 3), (4,)),
    ((3, 50, 7), (3, 51)),
    ((3, 44, 6), (3, 45)),
)
"""From, and before: the versions without the fault that can damage a WAL with two writers."""
_ASK_PYTHON: Final = "python3 -c 'import sqlite3; print(sqlite3.sqlite_version)'"
"""Tells what any other Python was built with."""
_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+)([^;]*)(;.*)?")
_BOUND: Final = re.compile(r"(>=|==|<)\s*([0-9.]+)")


def python(_: Place) -> Iterator[Finding]:
    details = {"version": platform.python_version(), "executable": sys.executable}
    yield ok(id="python.version", message=f"Python {details['version']}", details=details)


def sqlite(_: Place) -> Iterator[Finding]:
    yield judge_sqlite(sqlite3.sqlite_version)


def judge_sqlite(version: str) -> Finding:
    """Say what a version of SQLite means for crewd."""
    found = numbers(version)
    details = {"version": version}
    if found < _SQLITE_LEAST:
        return error(
            id="sqlite.version",
            message=f"SQLite {version} is too old: crewd needs 3.37 or newer; "
            "install it with a Python that was built with one",
            command=_ASK_PYTHON,
            details=details,
        )
    if any(first <= found < end for first, end in _SQLITE_FIXED):
        return ok(id="sqlite.version", message=f"SQLite {version}", details=details)
    return info(
        id="sqlite.version",
        message=f"SQLite {version} may damage a database that two programs write at once (mended "
        "in 3.51.3, 3.50.7 and 3.44.6). crewd writes from one place only; leave it so: do not "
        "open its database with another program while the daemon runs",
        command=_ASK_PYTHON,
        details=details,
    )


def packages(_: Place) -> Iterator[Finding]:
    try:
        required = metadata.requires("crewd") or []
    except metadata.PackageNotFoundError:
        yield info(
            id="package.crewd",
            message="crewd runs from its sources without being installed, so what it needs of "
            "other packages is not known",
        )
        return
    for requirement in required:
        found = _REQUIREMENT.match(requirement)
        if found is not None and not found[3]:
            yield judge_package(found[1], found[2].strip())


def judge_package(name: str, wanted: str) -> Finding:
    """Compare an installed package with the bounds, as `>=1.76` or `>=6.31,<8`."""
    command = f"{quoted(sys.executable)} -m pip install {quoted(name + wanted)}"
    place = f"package.{name.lower()}"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return error(
            id=place,
            message=f"{name} is not installed",
            command=command,
            details={"wanted": wanted},
        )
    details = {"version": version, "wanted": wanted}
    if all(_holds(version, *bound) for bound in _BOUND.findall(wanted)):
        return ok(id=place, message=f"{name} {version}", details=details)
    return error(
        id=place,
        message=f"{name} {version} does not fit: crewd needs {wanted}",
        command=command,
        details=details,
    )


def numbers(version: str) -> Version:
    """Return the numbers a version begins with."""
    head = re.split(r"[^0-9.]", version, maxsplit=1)[0]
    return tuple(int(part) for part in head.split(".") if part)


def _holds(version: str, relation: str, bound: str) -> bool:
    found, limit = numbers(version), numbers(bound)
    if relation == "==":
        return found == limit
    return found >= limit if relation == ">=" else found < limit


CHECKS: Final[tuple[Check, ...]] = (python, sqlite, packages)
