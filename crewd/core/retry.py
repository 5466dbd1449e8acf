"""When a failed attempt is followed by another, and how long after."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from crewd.core.spec import RetryPolicy
from crewd.core.units import Span
from crewd.core.words import Cause

FACTOR: Final = 2
HOPELESS: Final = frozenset(
    {
        Cause.AUTH,
        Cause.BILLING,
        Cause.MODEL_UNKNOWN,
        Cause.CONTEXT_OVERFLOW,
        Cause.DISK,
        Cause.WORKSPACE_MISSING,
        Cause.EXECUTABLE_MISSING,
        Cause.QUOTA,
        Cause.CANCELLED,
    }
)
"""Causes that the same attempt again would only meet again."""

ONCE_MORE: Final = 2
"""An agent that had nothing to say is given one more attempt, no more."""


def retry_delay(policy: RetryPolicy, failures: int, fraction: float) -> Span:
    """Return how long to wait after the `failures`-th failure in a row, counting from 1.

    `fraction` in 0..1 picks the place within the jitter: 0.5 is the plain exponential backoff.
    """
    base = min(policy.backoff * FACTOR ** max(0, min(failures - 1, 40)), policy.max_backoff)
    return Span(max(0, round(base + (2 * fraction - 1) * policy.jitter * base)))


def jitter_fraction(run_id: str, task_id: str, attempt: int) -> float:
    """Spread retries apart without chance, so that the same decision comes out every time."""
    key = f"{run_id}/{task_id}/{attempt}".encode()
    return int.from_bytes(blake2b(key, digest_size=4).digest(), "big") / 0xFFFF_FFFF


def may_retry(policy: RetryPolicy, spent: int, *, retryable: bool, cause: Cause | None) -> bool:
    """Say whether another attempt may follow the `spent` ones."""
    most = min(policy.max_attempts, ONCE_MORE) if cause is Cause.EMPTY else policy.max_attempts
    return retryable and cause not in HOPELESS and spent < most
