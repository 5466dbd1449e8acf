"""Output in transit: what a worker wrote and the controller has not taken yet."""

from __future__ import annotations

import os
from pathlib import Path

from crewd.host.protocol import SEGMENT_BYTES, HostPaths


class Spool:
    """One stream of one job. No file exists before the first byte."""

    __slots__ = (
        "_descriptor",
        "_first",
        "_number",
        "_paths",
        "_stream",
        "consumed",
        "job",
        "written",
    )

    def __init__(self, paths: HostPaths, job: str, stream: str) -> None:
        self._paths = paths
        self._stream = stream
        self._descriptor: int | None = None
        self._number = 0
        self._first = 0
        self.job = job
        self.written = 0
        self.consumed = 0

    def append(self, data: bytes) -> int:
        """Write what the segment and the disk have room for, and return how much that was."""
        room = SEGMENT_BYTES - self.written % SEGMENT_BYTES
        count = os.write(self._segment(), data if len(data) <= room else data[:room])
        self.written += count
        return count

    def consume(self, offset: int) -> None:
        """Drop the segments that lie wholly below the offset, but never the last one."""
        self.consumed = min(max(offset, self.consumed), self.written)
        while self._first < min(self.consumed // SEGMENT_BYTES, self._number):
            self._path(self._first).unlink(missing_ok=True)
            self._first += 1

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def unlink(self) -> None:
        self.close()
        if self.written:
            for number in range(self._first, self._number + 1):
                self._path(number).unlink(missing_ok=True)

    def _segment(self) -> int:
        number = self.written // SEGMENT_BYTES
        if self._descriptor is not None and number == self._number:
            return self._descriptor
        opened = os.open(self._path(number), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.close()
        self._descriptor, self._number = opened, number
        return opened

    def _path(self, number: int) -> Path:
        return self._paths.segment(self.job, self._stream, number)


class LeftSpools:
    """The files that earlier hosts left, by the spool name of their job."""

    def __init__(self, directory: Path) -> None:
        self._files: dict[str, list[Path]] = {}
        for path in directory.iterdir():
            self._files.setdefault(path.name.partition(".")[0], []).append(path)

    def keep_only(self, names: set[str]) -> None:
        """Unlink what belongs to no job that anybody can still ask for."""
        for name in self._files.keys() - names:
            self.unlink(name)

    def size(self, name: str, stream: str) -> int:
        """Return how many bytes were ever spooled: all segments but the last are full."""
        numbers = [
            int(path.suffix[1:])
            for path in self._files.get(name, ())
            if path.suffixes[0] == f".{stream}" and path.suffix[1:].isdigit()
        ]
        if not numbers:
            return 0
        last = max(numbers)
        path = next(p for p in self._files[name] if p.name.endswith(f".{stream}.{last}"))
        return last * SEGMENT_BYTES + path.stat().st_size

    def unlink(self, name: str) -> None:
        for path in self._files.pop(name, ()):
            path.unlink(missing_ok=True)
