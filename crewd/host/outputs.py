"""Take what workers write to their spools, and stop reading where nobody takes it further."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from functools import partial

from crewd.host.disk import Disk, Reserve
from crewd.host.job import Job, Stream
from crewd.host.loop import READ, Loop
from crewd.host.messages import Message

_READ_BYTES = 1 << 16  # What a pipe holds; a larger buffer costs a page fault for each page.
_TALKING_SECONDS = 0.05


class Outputs:
    """Reads the pipes of all jobs.

    A pipe is left alone while its job has too much that is unread, or while the disk takes
    nothing: then the worker waits in its write, and no byte is lost.
    """

    def __init__(
        self, loop: Loop, disk: Disk, reserve: Reserve, on_news: Callable[[Message], None]
    ) -> None:
        self._loop = loop
        self._disk = disk
        self._reserve = reserve
        self._on_news = on_news
        self._unread_limit = 0
        self._limited: dict[Stream, Job] = {}
        self._last_output = 0.0
        self.fresh: dict[Job, None] = {}  # Jobs with bytes that are not told yet.
        self.on_spooled: Callable[[Job], None] = lambda _job: None

    @property
    def talking(self) -> bool:
        return time.monotonic() - self._last_output < _TALKING_SECONDS

    def watch(self, job: Job) -> None:
        for stream in job.streams:
            self._watch(job, stream)

    def drain(self, job: Job) -> None:
        """Read what a worker has written till now, whatever the limits: pipes hold little."""
        for stream in job.streams:
            if stream.descriptor is None:
                continue
            left = fcntl.fcntl(stream.descriptor, fcntl.F_GETPIPE_SZ)
            while left > 0:
                count = self._read(job, stream)
                if count == 0:
                    break
                left -= count

    def waits_for_disk(self, job: Job) -> bool:
        return any(stream.held for stream in job.streams)

    def finish(self, job: Job) -> None:
        """Let go of both pipes, but drop what a kept child writes, lest it die of SIGPIPE."""
        self.fresh.pop(job, None)
        for stream in job.streams:
            self._disk.give_up(stream)
            self._limited.pop(stream, None)
            stream.held = b""
            stream.spool.close()
            if stream.descriptor is not None and job.keep_children:
                self._discard_rest(stream, stream.descriptor)
            else:
                self._close(stream)

    def hand_over(self, job: Job, successor: Job) -> None:
        """Let the pipes of one job be those of another from here on."""
        for old, new in zip(job.streams, successor.streams, strict=True):
            if old.descriptor is not None and not old.paused:
                self._loop.unwatch(old.descriptor)
            new.descriptor, old.descriptor = old.descriptor, None
        self.finish(job)
        self.watch(successor)

    def consumed(self, job: Job, *, stdout: int, stderr: int) -> None:
        job.stdout.spool.consume(stdout)
        job.stderr.spool.consume(stderr)
        self._resume_limited(job)

    def limit_unread(self, limit: int) -> None:
        """Let each job have this much that nobody has read."""
        self._unread_limit = limit
        for job in set(self._limited.values()):
            self._resume_limited(job)

    def _watch(self, job: Job, stream: Stream) -> None:
        if stream.descriptor is not None:
            self._loop.watch(stream.descriptor, READ, partial(self._readable, job, stream))

    def _readable(self, job: Job, stream: Stream, _events: int) -> None:
        if not stream.paused:
            self._read(job, stream)

    def _read(self, job: Job, stream: Stream) -> int:
        """Read once; return how many bytes came: none at the end, or when none are there."""
        if stream.descriptor is None:
            return 0
        try:
            data = os.read(stream.descriptor, _READ_BYTES)
        except BlockingIOError:
            return 0
        if not data:
            self._close(stream)
            return 0
        self._last_output = time.monotonic()
        self._store(job, stream, data)
        if not stream.paused and job.unread >= self._unread_limit:
            self._pause(stream)
            self._limited[stream] = job
            self._on_news({"news": "full", "job": job.key, "stream": stream.name})
        return len(data)

    def _store(self, job: Job, stream: Stream, data: bytes) -> None:
        self.fresh[job] = None
        stream.held += data
        if self._disk.waits(stream):
            return
        try:
            self._spool_held(stream)
        except OSError as error:
            self._pause(stream)
            self._disk.refused(stream, error, partial(self._try_held, job, stream))

    def _try_held(self, job: Job, stream: Stream) -> bool:
        self.fresh[job] = None
        try:
            self._spool_held(stream)
        except OSError:
            return False
        self._disk.give_up(stream)
        self._resume(job, stream)
        self.on_spooled(job)
        return True

    def _spool_held(self, stream: Stream) -> None:
        self._reserve.claim(len(stream.held))
        while stream.held:
            stream.held = stream.held[stream.spool.append(stream.held) :]

    def _resume_limited(self, job: Job) -> None:
        if job.unread >= self._unread_limit:
            return
        for stream in job.streams:
            if self._limited.pop(stream, None) is not None:
                self._resume(job, stream)

    def _pause(self, stream: Stream) -> None:
        if stream.descriptor is not None and not stream.paused:
            self._loop.unwatch(stream.descriptor)
        stream.paused = True

    def _resume(self, job: Job, stream: Stream) -> None:
        if stream.paused and not self._disk.waits(stream) and stream not in self._limited:
            stream.paused = False
            self._watch(job, stream)

    def _close(self, stream: Stream) -> None:
        if stream.descriptor is not None:
            if not stream.paused:
                self._loop.forget(stream.descriptor)
            os.close(stream.descriptor)
            stream.descriptor = None

    def _discard_rest(self, stream: Stream, descriptor: int) -> None:
        if not stream.paused:
            self._loop.unwatch(descriptor)
        stream.paused = False
        self._loop.watch(descriptor, READ, lambda _events: self._discard(stream))

    def _discard(self, stream: Stream) -> None:
        if stream.descriptor is None:
            return
        try:
            ended = not os.read(stream.descriptor, _READ_BYTES)
        except BlockingIOError:
            return
        if ended:
            self._close(stream)
