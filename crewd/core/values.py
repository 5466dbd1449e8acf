"""Frozen values that cost little: every fact, stimulus and effect is one.

Type checkers hold them frozen. At run time they are plain slotted dataclasses, because a frozen
dataclass takes three times as long to make, and a task is told by some thirty of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """Make a frozen value whose fields may be given by position."""
    return dataclass(slots=True, unsafe_hash=True)(cls)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make a frozen value whose fields are given by name."""
    return dataclass(slots=True, unsafe_hash=True, kw_only=True)(cls)
