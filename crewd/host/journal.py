"""What has to outlive this host: which jobs were started, and how they ended.

One append-only file, one write for all records of a loop turn, no fsync: the page cache survives a
kill -9 of anything here, and after a power cut the workers are gone too. Exit records are the very
lines that are sent as news.
"""

from __future__ import annotations

import os
from pathlib import Path

from crewd.host.messages import Message, RefusedError, line, parsed, text, texts

_ROTATE_BYTES = 1 << 20


class Journal:
    def __init__(self, path: Path, epoch: str) -> None:
        """Read what earlier hosts left, and begin a file of what is still open of it."""
        self._path = path
        self._epoch = epoch
        self._running: dict[str, str] = {}  # job -> the epoch it was started in
        self._exits: dict[str, bytes] = {}
        self._started_now: list[str] = []
        self._forgotten_now: list[str] = []
        self._pending = bytearray()
        self._size = 0
        self._rotate_at = _ROTATE_BYTES
        self.earlier_exits: dict[str, Message] = {}
        self._read_back()
        self.lost: dict[str, str] = dict(self._running)
        self._descriptor = self._begin()

    @property
    def empty(self) -> bool:
        return not (self._running or self._exits or self._pending)

    def started(self, job: str) -> None:
        if self._forgotten_now:
            self._collect()
        self._running[job] = self._epoch
        self._started_now.append(job)

    def exited(self, job: str, record: bytes) -> None:
        self._collect()  # A job that starts and ends in one turn is recorded in that order.
        self._running.pop(job, None)
        self._exits[job] = record
        self._pending += record

    def forgotten(self, job: str) -> None:
        if self._started_now:
            self._collect()
        if self._running.pop(job, None) is not None or self._exits.pop(job, None) is not None:
            self._forgotten_now.append(job)

    def flush(self) -> None:
        """Write this turn's records in one go; on OSError they stay pending for the next time."""
        if not (self._pending or self._started_now or self._forgotten_now):
            return
        self._collect()
        while self._pending:
            count = os.write(self._descriptor, self._pending)
            del self._pending[:count]
            self._size += count
        if self._size > self._rotate_at:
            self._rotate()

    def close(self) -> None:
        os.close(self._descriptor)
        if self.empty:
            self._path.unlink(missing_ok=True)

    def _rotate(self) -> None:
        try:
            begun = self._begin()
        except OSError:
            self._rotate_at = 2 * self._size  # The old file is whole: go on with it.
            return
        os.close(self._descriptor)
        self._descriptor = begun

    def _collect(self) -> None:
        if self._started_now:
            self._pending += _started_line(self._epoch, self._started_now)
            self._started_now.clear()
        if self._forgotten_now:
            self._pending += line({"forgotten": self._forgotten_now})
            self._forgotten_now.clear()

    def _read_back(self) -> None:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return
        # What follows the last line end was cut short by the death of its writer.
        for raw in content.split(b"\n")[:-1]:
            try:
                self._apply(parsed(raw), raw)
            except RefusedError:
                continue  # A full disk can cut a line in the middle; its neighbours are good.

    def _apply(self, record: Message, raw: bytes) -> None:
        if "started" in record:
            epoch = text(record, "epoch")
            self._running.update((job, epoch) for job in texts(record, "started"))
        elif "forgotten" in record:
            for job in texts(record, "forgotten"):
                self._running.pop(job, None)
                self._exits.pop(job, None)
                self.earlier_exits.pop(job, None)
        else:
            job = text(record, "job")
            self._running.pop(job, None)
            self._exits[job] = raw + b"\n"
            self.earlier_exits[job] = record

    def _begin(self) -> int:
        """Replace the file by one of what is not acknowledged; return its descriptor."""
        by_epoch: dict[str, list[str]] = {}
        for job, epoch in self._running.items():
            by_epoch.setdefault(epoch, []).append(job)
        kept = b"".join(_started_line(epoch, jobs) for epoch, jobs in by_epoch.items())
        kept += b"".join(self._exits.values())
        draft = self._path.with_suffix(".new")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        try:
            view = memoryview(kept)
            while view:
                view = view[os.write(descriptor, view) :]
            draft.rename(self._path)
        except OSError:
            os.close(descriptor)
            raise
        self._size = len(kept)
        self._rotate_at = max(_ROTATE_BYTES, 2 * self._size)
        return descriptor


def _started_line(epoch: str, jobs: list[str]) -> bytes:
    return line({"started": jobs, "epoch": epoch})
