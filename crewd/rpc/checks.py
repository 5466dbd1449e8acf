"""Problems of a request, collected so that its author hears of all of them at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

from google.protobuf.duration_pb2 import Duration

from crewd.core.errors import CrewdError, Reason, Violation
from crewd.core.units import SECOND, Span
from crewd.rpc.wire import KIB, MIB, size_of, span

PROMPT_BYTES: Final = MIB
"""The most bytes of a goal or a prompt."""
TITLE_BYTES: Final = 200
TASKS_PER_RUN: Final = 10_000
LABELS: Final = 64
LABEL_KEY_BYTES: Final = 100
LABEL_VALUE_BYTES: Final = 500
ARGUMENT_BYTES: Final = 128 * KIB - 1
"""What the system takes as one argument or variable."""
LONGEST_SPAN: Final = Span(3650 * 24 * 3600 * SECOND)

_SHORTEST_SPAN: Final = Span(1)
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

E = TypeVar("E")


class _Problem(NamedTuple):
    reason: Reason
    violation: Violation
    metadata: dict[str, str]


class Problems:
    """What is wrong with a request."""

    def __init__(self) -> None:
        self._found: list[_Problem] = []

    def add(self, field: str, description: str) -> None:
        self._found.append(_Problem(Reason.SPEC_INVALID, Violation(field, description), {}))

    def refuse(self) -> None:
        """Raise what was found, if anything. Of several reasons it is SPEC_INVALID."""
        if not self._found:
            return
        first = self._found[0]
        alike = all(problem.reason is first.reason for problem in self._found)
        more = f" (and {len(self._found) - 1} more)" if len(self._found) > 1 else ""
        raise CrewdError(
            first.reason if alike else Reason.SPEC_INVALID,
            f"{first.violation.field}: {first.violation.description}{more}",
            violations=[problem.violation for problem in self._found],
            **(first.metadata if alike else {}),
        )

    def bounded(self, field: str, text: str, limit: int) -> str:
        if size_of(text) > limit:
            size = size_of(text)
            self._too_large(field, f"has {size} bytes; the most is {limit}", limit)
        return text

    def counted(self, field: str, count: int, limit: int) -> None:
        if count > limit:
            self._too_large(field, f"has {count} entries; the most is {limit}", limit)

    def known(self, field: str, number: int, values: Mapping[int, E], default: E) -> E:
        """Return what the number stands for; 0 is the default."""
        if number == 0:
            return default
        if number not in values:
            self.add(field, f"this daemon does not know the value {number}")
        return values.get(number, default)

    def count(self, field: str, number: int, default: int, most: int) -> int:
        """Return a bound; 0 is the default."""
        if not 0 <= number <= most:
            self.add(field, f"must be from 0 to {most}")
        return number or default

    def span(self, field: str, value: Duration, *, least: Span = _SHORTEST_SPAN) -> Span:
        length = span(value)
        if not least <= length <= LONGEST_SPAN:
            self.add(field, f"must be {'above' if least else 'from'} 0 s and at most 3650 days")
        return length

    def argument(self, field: str, text: str) -> str:
        """Check what is passed to a program."""
        if "\0" in text:
            self.add(field, "has a NUL character")
        return self.bounded(field, text, ARGUMENT_BYTES)

    def variables(self, field: str, variables: Mapping[str, str]) -> dict[str, str]:
        for name, value in variables.items():
            self.names(field, [name])
            self.argument(f"{field}.{name}", value)
        return dict(variables)

    def names(self, field: str, names: Iterable[str]) -> tuple[str, ...]:
        kept = tuple(dict.fromkeys(names))
        for name in kept:
            if not _VARIABLE.fullmatch(name):
                self.add(field, f"{name[:100]!r} is no name of a variable")
        return kept

    def _too_large(self, field: str, description: str, limit: int) -> None:
        metadata = {"field": field, "limit": str(limit)}
        violation = Violation(field, description)
        self._found.append(_Problem(Reason.REQUEST_TOO_LARGE, violation, metadata))
