"""Bytes in chunks of any size to whole lines, in blocks, with the offset a restart goes on from.

Whole lines leave as one block however many they are: the transcript takes the block as it is,
and only a fold that looks at lines pays for splitting it. A line over the cap is passed on in
pieces as they come and is never held.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

MAX_LINE: Final = 8 * 1024 * 1024
"""A longer line is cut into pieces; its line end does not count."""
_CHUNK: Final = 1024 * 1024


class Stream(StrEnum):
    STDOUT = "stdout"
    STDERR = "stderr"


class Block(NamedTuple):
    """Consecutive bytes of a stream: whole lines, or a piece of one oversize line."""

    data: bytes
    oversize: bool = False
    begins: bool = False
    """The first piece of an oversize line."""


class Splitter:
    """Splits one stream. `offset` and `skipping` are all it takes to go on from here."""

    def __init__(self, offset: int = 0, *, skipping: bool = False, cap: int = MAX_LINE) -> None:
        self.offset = offset
        """The end of the last block given out."""
        self.skipping = skipping
        """Whether `offset` is inside an oversize line."""
        self._cap = cap
        self._held: list[bytes] = []
        self._held_bytes = 0

    @property
    def read_to(self) -> int:
        """Where the next chunk must come from."""
        return self.offset + self._held_bytes

    def feed(self, chunk: bytes) -> list[Block]:
        """Take the bytes that follow and return what is complete."""
        size = min(self._cap, _CHUNK)
        blocks: list[Block] = []
        for start in range(0, len(chunk), size):
            self._feed(chunk[start : start + size], blocks)
        return blocks

    def finish(self) -> list[Block]:
        """Return the last line if it has no line end. Nothing may be fed after it."""
        blocks: list[Block] = []
        if self._held_bytes:
            self._emit(Block(self._take()), blocks)
        return blocks

    def _feed(self, chunk: bytes, blocks: list[Block]) -> None:
        if self.skipping:
            chunk = self._skip(chunk, blocks)
        last = chunk.rfind(b"\n") + 1
        if last:
            self._end_lines(chunk[:last], blocks)
            chunk = chunk[last:]
        if self._held_bytes + len(chunk) > self._cap:
            self._emit(Block(self._take(chunk), oversize=True, begins=True), blocks)
            self.skipping = True
        elif chunk:
            self._held.append(chunk)
            self._held_bytes += len(chunk)

    def _skip(self, chunk: bytes, blocks: list[Block]) -> bytes:
        """Pass on what belongs to the oversize line; return what follows it."""
        end = chunk.find(b"\n") + 1
        self._emit(Block(chunk[: end or len(chunk)], oversize=True), blocks)
        if not end:
            return b""
        self.skipping = False
        return chunk[end:]

    def _end_lines(self, data: bytes, blocks: list[Block]) -> None:
        """Give out bytes that end at a line end, after whatever was held of their first line."""
        first = data.find(b"\n") + 1
        if self._held_bytes + first - 1 > self._cap:
            self._emit(Block(self._take(data[:first]), oversize=True, begins=True), blocks)
            data = data[first:]
        if data:
            self._emit(Block(self._take(data)), blocks)

    def _take(self, more: bytes = b"") -> bytes:
        if not self._held:
            return more
        self._held.append(more)
        joined = b"".join(self._held)
        self._held.clear()
        self._held_bytes = 0
        return joined

    def _emit(self, block: Block, blocks: list[Block]) -> None:
        self.offset += len(block.data)
        blocks.append(block)


def lines_of(block: Block) -> list[bytes]:
    """Return the lines of a block of whole lines, without their LF or CR LF."""
    lines = block.data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    if b"\r" in block.data:
        return [line.removesuffix(b"\r") for line in lines]
    return lines
