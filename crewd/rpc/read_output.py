"""ReadOutput: the transcript of an attempt, as far as it is committed."""

from __future__ import annotations

import asyncio
from typing import Final

from crewd.core.model import Attempt
from crewd.core.states import TASK_TERMINAL
from crewd.core.words import AttemptStatus
from crewd.rpc.calls import Context, Handler, required, stream
from crewd.rpc.errors import (
    draining,
    invalid,
    offset_out_of_range,
    run_not_found,
    task_not_found,
)
from crewd.rpc.ports import Wiring
from crewd.rpc.wire import KIB
from crewd.runtime.feed import Changes
from crewd.v1 import run_stream_pb2 as pb
from crewd.workers.lines import Stream
from crewd.workers.transcript import Transcript

CHUNK_BYTES: Final = 256 * KIB
PAUSE_SECONDS: Final = 0.02
"""Between two looks at what is written all the time."""

_STREAMS: Final = {
    pb.OUTPUT_STREAM_UNSPECIFIED: Stream.STDOUT,
    pb.OUTPUT_STREAM_STDOUT: Stream.STDOUT,
    pb.OUTPUT_STREAM_STDERR: Stream.STDERR,
}


class OutputStream:
    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring

    def handlers(self) -> dict[str, Handler]:
        return {"ReadOutput": stream(self._read_output, pb.ReadOutputRequest.FromString)}

    async def _read_output(self, request: pb.ReadOutputRequest, context: Context) -> None:
        _check(request)
        wiring = self._wiring
        with (
            wiring.feed.watch_tasks(request.run_id) as changes,
            wiring.presence.wakes(changes.news),
        ):
            await _Reading(wiring, request, context, changes).run()


def _check(request: pb.ReadOutputRequest) -> None:
    required("run_id", request.run_id)
    required("task_id", request.task_id)
    if request.stream not in _STREAMS:
        raise invalid("stream", f"there is no output {request.stream}")
    if request.limit < 0:
        raise invalid("limit", "is negative; 0 means no limit")
    if request.attempt < 0:
        raise invalid("attempt", "is negative; 0 means the latest")


class _Reading:
    """One call. `changes` was registered before anything is read."""

    def __init__(
        self, wiring: Wiring, request: pb.ReadOutputRequest, context: Context, changes: Changes
    ) -> None:
        self._wiring = wiring
        self._request = request
        self._context = context
        self._changes = changes
        self._stream = _STREAMS[request.stream]
        self._number = request.attempt
        self._left = request.limit or None
        """How much may still be sent; None is no limit."""
        self._woken = 0.0
        """When it last had something to look at, by the loop's clock."""

    async def run(self) -> None:
        """Send what there is; when following, what is written until the attempt has ended."""
        attempt = await self._first_attempt()
        if attempt is None:
            await self._context.write(pb.ReadOutputResponse().SerializeToString())
            return
        self._number = attempt.number
        offset = self._begin(attempt)
        while True:
            following = self._request.follow and attempt.status is not AttemptStatus.ENDED
            offset = await self._copy(attempt, offset, following=following)
            if not following or self._left == 0:
                return
            await self._wait()
            attempt = await self._attempt() or await self._refuse()

    async def _first_attempt(self) -> Attempt | None:
        """Return the attempt asked for; None while there is none and nobody waits for it."""
        while True:
            attempt = await self._attempt()
            if attempt is not None:
                return attempt
            request = self._request
            task = await self._wiring.reads.get_task(request.run_id, request.task_id)
            if task is None or self._number:
                await self._refuse()
            elif task.status in TASK_TERMINAL or not request.follow:
                return None
            await self._wait()

    async def _attempt(self) -> Attempt | None:
        request = self._request
        return await self._wiring.reads.get_attempt(request.run_id, request.task_id, self._number)

    async def _refuse(self) -> Attempt:
        request = self._request
        if await self._wiring.reads.get_run(request.run_id) is None:
            raise run_not_found(request.run_id)
        raise task_not_found(request.run_id, request.task_id, self._number)

    def _begin(self, attempt: Attempt) -> int:
        offset, length = self._request.offset, self._length(attempt)
        if offset < 0:
            return max(0, length + offset)
        ended = attempt.status is AttemptStatus.ENDED
        if offset > length and (ended or not self._request.follow):
            raise offset_out_of_range(offset, length, "output")
        return offset

    def _length(self, attempt: Attempt) -> int:
        return attempt.stdout_bytes if self._stream is Stream.STDOUT else attempt.stderr_bytes

    async def _copy(self, attempt: Attempt, offset: int, *, following: bool) -> int:
        """Send what is committed from `offset` on. Without `following` it ends with a response."""
        transcript = Transcript(
            self._wiring.transcripts,
            (attempt.run_id, attempt.task_id, attempt.number),
            lengths=(attempt.stdout_bytes, attempt.stderr_bytes),
        )
        length = self._length(attempt)
        ended = attempt.status is AttemptStatus.ENDED
        while not following or offset < length:
            size = CHUNK_BYTES if self._left is None else min(CHUNK_BYTES, self._left)
            chunk = await asyncio.to_thread(transcript.read, self._stream, offset, size)
            at_end = chunk.next_offset >= length
            response = pb.ReadOutputResponse(
                attempt=attempt.number,
                offset=chunk.offset,
                data=chunk.data,
                next_offset=chunk.next_offset,
                eof=ended and at_end,
                truncated_before=chunk.truncated_before or chunk.truncated,
            )
            await self._context.write(response.SerializeToString())
            offset = chunk.next_offset
            if self._left is not None:
                self._left -= len(chunk.data)
            if at_end or self._left == 0:
                break
            if self._wiring.presence.draining is not None:
                raise draining()
        return offset

    async def _wait(self) -> None:
        """Return when the task may have changed."""
        news, presence = self._changes.news, self._wiring.presence
        clock = asyncio.get_running_loop().time
        rested = clock() - self._woken
        if rested < PAUSE_SECONDS:
            await asyncio.sleep(PAUSE_SECONDS - rested)
        while self._request.task_id not in self._changes.take():
            if self._changes.take_deleted_runs():
                await self._refuse()
            if presence.draining is not None:
                raise draining()
            await news.wait(self._wiring.heartbeat_seconds)
        self._woken = clock()
