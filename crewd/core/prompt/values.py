"""A prompt and what is to be known of it."""

from __future__ import annotations

import hashlib
from typing import Final

from crewd.core.redaction.redactor import redact
from crewd.core.values import record, value

_DESCRIBED: Final = 1000
"""Characters of a description."""


@record
class Section:
    """A part of a prompt, as it is recorded for who wants to know where the room went."""

    name: str
    size_bytes: int


@record
class Spill:
    """A text that the prompt only points to: kept whole as an artifact."""

    name: str
    text: str


@record
class Prompt:
    text: str
    sections: tuple[Section, ...] = ()
    """In the order they have in the text, which are joined by an empty line."""
    omitted: tuple[str, ...] = ()
    """What is not in it, or not whole, for people."""
    spills: tuple[Spill, ...] = ()

    @property
    def description(self) -> str:
        """Where the room went, and what is not in it, in one text for people."""
        sizes = ", ".join(f"{section.name} {section.size_bytes}" for section in self.sections)
        told = "; ".join((f"bytes: {sizes}", *self.omitted))
        return told if len(told) <= _DESCRIBED else f"{told[:_DESCRIBED]}…"


@value
class Part:
    """A section while the prompt is made. Without text it is left out."""

    name: str
    text: str = ""


class Leftovers:
    """What did not fit: told to people, kept as artifacts, and where the agent finds them."""

    def __init__(self, artifacts: str) -> None:
        self._artifacts = artifacts
        self.omitted: list[str] = []
        self.spills: list[Spill] = []

    def tell(self, line: str) -> None:
        self.omitted.append(line)

    def keep(self, name: str, text: str) -> str:
        """Keep a text whole, and return the words for where it is."""
        # What is kept is redacted, and their files are named by what is in them.
        kept = redact(text.encode("utf-8", "replace").decode())
        self.spills.append(Spill(name=name, text=kept))
        return self.file(hashlib.sha256(kept.encode()).hexdigest())

    def file(self, sha256: str) -> str:
        """Return the words for where an artifact of the run is."""
        return f"the file {self._artifacts}/{sha256}"
