"""The transcript of an attempt: what its worker wrote, by logical offsets that never change.

A stream keeps its first 192 MiB in one file and the last 64 MiB after these in segment files
named by their start offset; what lies between is dropped. A file exists from the first byte on.
Every function blocks and belongs in a thread. No file stays open, nothing is fsynced: after a
reboot a file may be shorter than was committed, and is then served as far as it goes.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Self

from crewd.core.model import Attempt
from crewd.workers.lines import Stream

MIB: Final = 1024 * 1024
RESERVE: Final = 24 * MIB
"""Room that transcripts leave on the disk: less than the host leaves, more than the store does."""
_SMALL_SHARE: Final = 10
"""Of a small disk no more than this part is kept free; the host keeps an eighth."""
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_LOOK_BYTES: Final = 64 * 1024
_LOOK_SECONDS: Final = 1.0
_FLAGS: Final = os.O_CLOEXEC | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What is kept of a stream. `tail` is a multiple of `segment`."""

    head: int = 192 * MIB
    tail: int = 64 * MIB
    segment: int = 8 * MIB


DEFAULT_SIZES: Final = Sizes()


class Chunk(NamedTuple):
    """Consecutive bytes of a stream, as an answer to a read at some offset."""

    offset: int
    """Where `data` begins."""
    data: bytes
    next_offset: int
    """Where to read on; the length at the end."""
    truncated_before: bool = False
    """What was asked for is dropped: `offset` is where the kept bytes begin again."""
    truncated: bool = False
    """The end of the stream is lost, and nothing is left to read."""


class Transcript:
    """Both streams of one attempt. Only one object may append; others read committed lengths."""

    def __init__(
        self,
        root: Path,
        key: tuple[str, str, int],
        *,
        lengths: tuple[int, int] = (0, 0),
        sizes: Sizes = DEFAULT_SIZES,
        reserve: int | None = None,
    ) -> None:
        """Open nothing. `root` is the folder of all runs, `lengths` what stdout, stderr have."""
        run_id, task_id, number = key
        self._folder = folder_of(root, run_id)
        if not _PLAIN_NAME.fullmatch(task_id):
            raise ValueError(task_id)
        self._paths = {s: str(self._folder / f"{task_id}.{number}.{s}") for s in Stream}
        self._lengths = dict(zip(Stream, lengths, strict=True))
        self._sizes = sizes
        self._reserve = reserve
        self._unseen = 0
        self._look_at = 0.0

    @classmethod
    def of(cls, root: Path, attempt: Attempt, sizes: Sizes = DEFAULT_SIZES) -> Self:
        """Return the transcript as far as the attempt's row knows it."""
        key = (attempt.run_id, attempt.task_id, attempt.number)
        lengths = (attempt.stdout_bytes, attempt.stderr_bytes)
        return cls(root, key, lengths=lengths, sizes=sizes)

    def length(self, stream: Stream) -> int:
        return self._lengths[stream]

    def append(self, stream: Stream, data: bytes) -> None:
        """Write at the end. After an OSError, `truncate_to` makes the end certain again.

        ENOSPC is raised while less than the reserve is free, looked at once per 64 KiB or second.
        """
        view = memoryview(data)
        while view:
            end = self._lengths[stream]
            start = self._start_of(end)
            room = self._end_of(start) - end
            if start == end and start - self._sizes.tail >= self._sizes.head:
                Path(self._path(stream, start - self._sizes.tail)).unlink(missing_ok=True)
            self._write(stream, start, end, view[:room])
            self._lengths[stream] += min(room, len(view))
            view = view[room:]

    def truncate_to(self, stream: Stream, length: int) -> None:
        """Forget what was written after `length`: it was not committed."""
        for start in self._starts_on_disk(stream):
            path = self._path(stream, start)
            if start >= length:
                Path(path).unlink(missing_ok=True)
            elif _size(path) > length - start:
                os.truncate(path, length - start)
        self._lengths[stream] = length

    def read(self, stream: Stream, offset: int, limit: int) -> Chunk:
        """Return at most `limit` bytes; a negative offset counts from the end."""
        length = self._lengths[stream]
        wanted = max(0, length + offset) if offset < 0 else min(offset, length)
        position = wanted
        while position < length:
            start = self._kept_from(position, length)
            position = max(position, start)
            end = min(length, self._end_of(start))
            data = self._read(stream, start, position, min(limit, end - position))
            if data:
                return Chunk(position, data, position + len(data), position > wanted)
            position = end
        return Chunk(length, b"", length, truncated=wanted < length)

    def tail(self, stream: Stream, limit: int) -> tuple[bytes, bool]:
        """Return the last bytes, and whether there is more before them."""
        length = self._lengths[stream]
        offset, parts = max(0, length - limit), list[bytes]()
        while offset < length:
            chunk = self.read(stream, offset, limit)
            parts.append(chunk.data)
            offset = chunk.next_offset
        data = b"".join(parts)
        return data, len(data) < length

    def _start_of(self, position: int) -> int:
        """Return where the file begins that holds the byte at `position`."""
        head, segment = self._sizes.head, self._sizes.segment
        if position < head:
            return 0
        return position - (position - head) % segment

    def _end_of(self, start: int) -> int:
        return start + self._sizes.segment if start else self._sizes.head

    def _kept_from(self, position: int, length: int) -> int:
        """Return the start of the file with `position`, or of the first one kept after it."""
        start = self._start_of(position)
        if start == 0:
            return 0
        last = self._start_of(length - 1)
        return max(start, last - self._sizes.tail + self._sizes.segment)

    def _path(self, stream: Stream, start: int) -> str:
        return f"{self._paths[stream]}.{start}" if start else self._paths[stream]

    def _starts_on_disk(self, stream: Stream) -> list[int]:
        """Return where its files begin. Only a full head is worth a look at the whole folder."""
        path = self._paths[stream]
        size = _size(path)
        if size < self._sizes.head:
            return [0] if size else []
        prefix = f"{Path(path).name}."
        names = (entry.name for entry in os.scandir(self._folder))
        return [0, *(int(name.removeprefix(prefix)) for name in names if name.startswith(prefix))]

    def _write(self, stream: Stream, start: int, position: int, data: memoryview) -> None:
        try:
            file = _open_to_write(self._path(stream, start))
        except FileNotFoundError:
            _make_private(self._folder)
            file = _open_to_write(self._path(stream, start))
        try:
            self._claim(file, len(data))
            while data:
                written = os.pwrite(file, data, position - start)
                position += written
                data = data[written:]
        finally:
            os.close(file)

    def _claim(self, file: int, size: int) -> None:
        self._unseen += size
        now = time.monotonic()
        if self._unseen < _LOOK_BYTES and now < self._look_at:
            return
        disk = os.fstatvfs(file)
        reserve = self._reserve
        if reserve is None:
            reserve = min(RESERVE, disk.f_blocks * disk.f_frsize // _SMALL_SHARE)
        if disk.f_bavail * disk.f_frsize < reserve:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._folder))
        self._unseen = 0
        self._look_at = now + _LOOK_SECONDS

    def _read(self, stream: Stream, start: int, position: int, limit: int) -> bytes:
        try:
            file = os.open(self._path(stream, start), os.O_RDONLY | _FLAGS)
        except FileNotFoundError:
            return b""
        try:
            return os.pread(file, limit, position - start)
        finally:
            os.close(file)


def folder_of(root: Path, run_id: str) -> Path:
    """Return where a run's transcripts are. ValueError for what is no id."""
    if not _PLAIN_NAME.fullmatch(run_id):
        raise ValueError(run_id)
    return root / run_id


def transcribed_runs(root: Path) -> list[str]:
    """Return the ids of the runs that have transcripts."""
    try:
        return sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
    except FileNotFoundError:
        return []


def delete_run(root: Path, run_id: str) -> int:
    """Delete the transcripts of a run; return how many bytes they were."""
    folder = folder_of(root, run_id)
    try:
        freed = sum(entry.stat(follow_symlinks=False).st_size for entry in os.scandir(folder))
    except FileNotFoundError:
        return 0
    shutil.rmtree(folder)
    return freed


def _make_private(folder: Path) -> None:
    folder.parent.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def _open_to_write(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | _FLAGS, 0o600)


def _size(path: str) -> int:
    try:
        return Path(path).lstat().st_size
    except FileNotFoundError:
        return 0
