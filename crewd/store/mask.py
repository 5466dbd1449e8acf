"""Text that is kept as a file: what is text, and masking its secrets as it is copied."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import Final

from crewd.core.redaction.known import NOTHING_KNOWN, KnownSecrets
from crewd.core.redaction.redactor import Redactor, redact

HEAD_BYTES: Final = 64 * 1024
"""By so much of a file it is told whether it is text."""
LONGEST_LINE: Final = 8 * 1024 * 1024
"""A longer line is masked in pieces; a text that is no longer, as a whole."""
_TEXT_TYPE: Final = re.compile(
    r"text/.*|application/(?:(?:.*[-+.])?(?:json|jsonl|ndjson|xml|yaml|toml)|javascript"
    r"|x-(?:sh|shellscript|python|perl|ruby|httpd-php|tex|diff|patch)|sql|graphql)|.*\+xml",
    re.IGNORECASE,
)


def looks_like_text(head: bytes, media_type: str) -> bool:
    """Say whether this is the beginning of a text, unless its media type says that it is none."""
    essence = media_type.partition(";")[0].strip()
    if essence and not _TEXT_TYPE.fullmatch(essence):
        return False
    head = head[:HEAD_BYTES]
    if b"\0" in head:
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


class Mask:
    """Masks one text as it is copied. What is no UTF-8 in it stays as it is."""

    def __init__(self, known: KnownSecrets = NOTHING_KNOWN) -> None:
        self.changed = False
        self._known = known
        self._redactor = Redactor(known)
        self._in_line = False
        """What follows belongs to a line that was too long to be held."""

    def text(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Give the text as a whole if it can be held, else in whole lines, or pieces of a line."""
        held, whole = b"", True
        for block in blocks:
            held += block
            if len(held) >= LONGEST_LINE or not whole:
                whole = False
                *parts, held = self._parts(held)
                yield from parts
        yield self._whole(held) if whole else self._noted(held, self._redactor.feed(held))
        yield self._redactor.finish()

    def _whole(self, data: bytes) -> bytes:
        text = self._known.mask(data).decode("utf-8", "surrogateescape")
        return self._noted(data, redact(text).encode("utf-8", "surrogateescape"))

    def _parts(self, data: bytes) -> Iterator[bytes]:
        """Give what can be masked of it, and last what cannot yet."""
        if self._in_line or (b"\n" not in data and len(data) >= LONGEST_LINE):
            end = data.find(b"\n") + 1 or len(data)
            masked = self._redactor.piece(data[:end], begins=not self._in_line)
            yield self._noted(data[:end], masked)
            self._in_line = not data.endswith(b"\n", 0, end)
            data = data[end:]
        end = data.rfind(b"\n") + 1
        yield self._noted(data[:end], self._redactor.feed(data[:end]))
        yield data[end:]

    def _noted(self, data: bytes, masked: bytes) -> bytes:
        self.changed = self.changed or masked != data
        return masked
