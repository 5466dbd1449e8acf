"""Secrets whose values are known: masked wherever they stand, whatever is around them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote

from crewd.core.redaction.spans import MASK

SHORTEST_KNOWN: Final = 8
"""A shorter value may be a word that stands everywhere for other reasons."""


class KnownSecrets:
    """Masks exact values, also as JSON and URLs write them. They are only ever in memory."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        forms = {form for value in values for form in _forms(value)}
        self._forms = sorted(forms, key=lambda form: (-len(form), form))

    def mask(self, data: bytes) -> bytes:
        for form in self._forms:
            data = data.replace(form, MASK.encode())
        return data

    def mask_text(self, text: str) -> str:
        """As `mask`; the same object when there is nothing to mask."""
        if not self._forms:
            return text
        data = text.encode("utf-8", "surrogatepass")
        masked = self.mask(data)
        return text if masked == data else masked.decode("utf-8", "surrogatepass")


NOTHING_KNOWN: Final = KnownSecrets()


def _forms(value: str) -> Iterator[bytes]:
    """Return what to look for: each line of it, since output is looked at by lines."""
    for line in value.splitlines():
        plain = line.strip()
        if len(plain) < SHORTEST_KNOWN:
            continue
        spellings = (
            plain,
            json.dumps(plain)[1:-1],
            json.dumps(plain, ensure_ascii=False)[1:-1],
            quote(plain, safe="", errors="surrogateescape"),
        )
        for spelling in spellings:
            yield spelling.encode("utf-8", "surrogateescape")
