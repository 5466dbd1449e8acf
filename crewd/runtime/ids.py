"""Identifiers: a prefix and ten random characters of lower-case base32."""

from __future__ import annotations

from base64 import b32encode
from secrets import token_bytes
from typing import Final

LENGTH: Final = 10
_BYTES: Final = 7


def new_id(prefix: str) -> str:
    """Return e.g. `run_k3v9x0q2ab`: 50 random bits, checked for collisions by the store's keys."""
    return f"{prefix}_{b32encode(token_bytes(_BYTES)).decode().lower()[:LENGTH]}"


def new_ask_id() -> str:
    return new_id("ask")
