"""What a measure came to, beside what it may come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

WIDTH = 70


@dataclass(frozen=True, slots=True)
class Row:
    """`met` is None where there is no limit: the figure is for comparison."""

    measure: str
    value: str
    limit: str = ""
    met: bool | None = None

    def line(self) -> str:
        verdict = {True: "met", False: "MISSED", None: ""}[self.met]
        return f"  {self.measure:<{WIDTH}} {self.value:>12}  {self.limit:>12}  {verdict}".rstrip()


@dataclass(frozen=True, slots=True)
class Unit:
    """How a figure is written, and how finely."""

    name: str
    digits: int = 2

    def write(self, value: float) -> str:
        return f"{value:,.{self.digits}f} {self.name}"


TIMES = Unit("x")
MILLISECONDS = Unit("ms")
SECONDS = Unit("s")
PER_SECOND = Unit("/s", 0)
MEBIBYTES = Unit("MiB", 1)
PERCENT = Unit("%", 3)
PLAIN = Unit("", 2)
COUNT = Unit("", 0)


def told(measure: str, value: float, unit: Unit) -> Row:
    """Give a figure that has no limit."""
    return Row(measure, unit.write(value))


def at_most(measure: str, value: float, unit: Unit, limit: float) -> Row:
    return Row(measure, unit.write(value), f"<= {limit:,g} {unit.name}", value <= limit)


def at_least(measure: str, value: float, unit: Unit, limit: float) -> Row:
    return Row(measure, unit.write(value), f">= {limit:,g} {unit.name}", value >= limit)


def not_measured(measure: str, why: str) -> Row:
    return Row(f"{measure}: {why}", "not measured", "", met=False)


def middle(values: Sequence[float]) -> float:
    return median(values)


def tenth_worst(values: Sequence[float]) -> float:
    """Give the value that nine of ten are below."""
    return quantiles(values, n=10, method="inclusive")[-1]
