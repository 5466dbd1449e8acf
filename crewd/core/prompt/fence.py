"""Fences around what others wrote.

Their mark is taken from the texts themselves, so it is the same for the same prompt, and none of
the texts can contain it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final

from crewd.core.values import value

MARK_CHARACTERS: Final = 20


@value
class Fence:
    mark: str

    def around(self, text: str, source: str) -> str:
        """Return the text, as it is, between lines that nothing in it can imitate."""
        return f'<data-{self.mark} from="{source}">\n{text}\n</data-{self.mark}>'


def fence_of(texts: Iterable[str], absent_from: Sequence[str]) -> Fence:
    """Return the fence that belongs to these texts, with a mark that is in none of the others."""
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    shown = [text.lower() for text in absent_from]
    while True:
        mark = digest.hexdigest()[:MARK_CHARACTERS]
        if not any(mark in text for text in shown):
            return Fence(mark)
        digest.update(b"again")
