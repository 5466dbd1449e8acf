"""How much is measured: enough to be steady, or just enough to see that it works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Scale:
    """`folder` is the bench's own, on the disk that is measured."""

    folder: Path
    quick: bool
    say: Callable[[str], None]

    def pick(self, full: int, quick: int) -> int:
        return quick if self.quick else full
