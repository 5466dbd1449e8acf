"""Read what the host spools of a job. Nobody else in the daemon knows where that is."""

from __future__ import annotations

import os

from crewd.host.protocol import SEGMENT_BYTES, HostPaths


class SpoolReader:
    """One stream of one job. Reading blocks: call it in a thread."""

    __slots__ = ("_job", "_paths", "_stream")

    def __init__(self, paths: HostPaths, job: str, stream: str) -> None:
        self._paths = paths
        self._job = job
        self._stream = stream

    def read(self, offset: int, limit: int) -> bytes:
        """Return up to `limit` bytes from `offset` on; b"" where nothing is."""
        parts: list[bytes] = []
        while limit > 0:
            part = self._read_segment(offset, limit)
            if not part:
                break
            parts.append(part)
            offset += len(part)
            limit -= len(part)
        return b"".join(parts)

    def _read_segment(self, offset: int, limit: int) -> bytes:
        number, start = divmod(offset, SEGMENT_BYTES)
        try:
            descriptor = os.open(self._paths.segment(self._job, self._stream, number), os.O_RDONLY)
        except FileNotFoundError:
            return b""
        try:
            return os.pread(descriptor, min(limit, SEGMENT_BYTES - start), start)
        finally:
            os.close(descriptor)
