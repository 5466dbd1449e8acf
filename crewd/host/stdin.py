"""What is on its way into a worker: whole messages in sequence, never waited for."""

from __future__ import annotations

import os
import select
from collections import deque
from collections.abc import Callable

from crewd.host.loop import WRITE, Loop
from crewd.host.messages import RefusedError
from crewd.host.protocol import STDIN_BYTES


class StdinQueue:
    """Takes messages up to a limit; a message larger than that is taken when nothing else waits."""

    def __init__(self, loop: Loop, descriptor: int | None, on_room: Callable[[], None]) -> None:
        self._loop = loop
        self._descriptor = descriptor
        self._on_room = on_room
        self._messages: deque[memoryview] = deque()
        self._queued = 0
        self._refused_bytes = 0
        self._watched = False
        self._closing = False
        self.sequence = 0

    @property
    def queued(self) -> int:
        """How many bytes the pipe has not taken yet."""
        return self._queued

    @property
    def open(self) -> bool:
        """Whether what is written now can reach the worker."""
        if self._descriptor is None or self._closing:
            return False
        ends = select.poll()
        ends.register(self._descriptor, 0)
        return not ends.poll(0)  # It tells of nothing but a worker that has closed its end.

    def hand_over(self, on_room: Callable[[], None]) -> StdinQueue:
        """Let go of the pipe, in which nothing may wait, to a queue that begins anew."""
        descriptor, self._descriptor = self._descriptor, None
        return StdinQueue(self._loop, descriptor, on_room)

    def write(self, sequence: int, data: str) -> None:
        """Accept the message with the next sequence, or raise RefusedError."""
        if sequence <= self.sequence:
            return
        if self._descriptor is None or self._closing:
            raise self._refused("closed", "stdin is closed")
        if sequence != self.sequence + 1:
            raise self._refused("gap", f"expected {self.sequence + 1}, got {sequence}")
        message = data.encode(errors="replace")
        if self._queued and self._queued + len(message) > STDIN_BYTES:
            self._refused_bytes = len(message)
            raise self._refused("full", f"{self._queued} bytes wait to be read by the worker")
        self.sequence = sequence
        if message:
            self._messages.append(memoryview(message))
            self._queued += len(message)
            self._push()

    def close_when_written(self) -> None:
        self._closing = True
        self._push()

    def close(self) -> None:
        """Close now and drop what waits."""
        if self._descriptor is not None:
            if self._watched:
                self._loop.forget(self._descriptor)
                self._watched = False
            os.close(self._descriptor)
            self._descriptor = None
        self._messages.clear()
        self._queued = 0

    def _push(self) -> None:
        if self._descriptor is None or self._watched:
            return
        self._drain(self._descriptor)
        self._watch()

    def _on_writable(self, _events: int) -> None:
        if self._descriptor is None or not self._watched:
            return
        self._drain(self._descriptor)
        if not self._messages:
            self._unwatch()
        if self._refused_bytes and self._has_room():
            self._refused_bytes = 0
            self._on_room()

    def _drain(self, descriptor: int) -> None:
        try:
            while self._messages:
                count = os.write(descriptor, self._messages[0])
                self._queued -= count
                if count < len(self._messages[0]):
                    self._messages[0] = self._messages[0][count:]
                else:
                    self._messages.popleft()
        except BlockingIOError:
            return
        except OSError:  # The worker has closed its end.
            self.close()
        if self._closing:
            self.close()

    def _has_room(self) -> bool:
        return not self._queued or self._queued + self._refused_bytes <= STDIN_BYTES

    def _watch(self) -> None:
        if self._descriptor is not None and self._messages:
            self._loop.watch(self._descriptor, WRITE, self._on_writable)
            self._watched = True

    def _unwatch(self) -> None:
        if self._watched and self._descriptor is not None:
            self._loop.unwatch(self._descriptor)
        self._watched = False

    def _refused(self, kind: str, message: str) -> RefusedError:
        return RefusedError(kind, message, stdin_seq=self.sequence)
