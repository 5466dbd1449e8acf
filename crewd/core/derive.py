"""Ids that the core itself gives: they follow from what they are of."""

from __future__ import annotations

import hashlib
from base64 import b32encode
from typing import Final

_CHARACTERS: Final = 10


def derived_id(kind: str, *parts: str) -> str:
    """Return the id of this kind (`art`, `steer`) that belongs to these words, always the same."""
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    return f"{kind}_{b32encode(digest)[:_CHARACTERS].decode().lower()}"
