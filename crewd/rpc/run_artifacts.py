"""ListArtifacts and ReadArtifact: what a run keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Final, NamedTuple, NoReturn

from crewd.core.errors import CrewdError, Reason, Violation
from crewd.core.model import Artifact
from crewd.core.words import ArtifactKind
from crewd.rpc import convert, enums
from crewd.rpc.calls import Context, Handler, required, stream, unary
from crewd.rpc.errors import (
    artifact_not_found,
    draining,
    invalid,
    offset_out_of_range,
    run_not_found,
)
from crewd.rpc.pages import gather, place_of
from crewd.rpc.ports import Wiring
from crewd.rpc.wire import ITEMS_TAG, KIB, repeated
from crewd.store import ArtifactFilter
from crewd.v1 import run_artifact_pb2 as pb
from crewd.workers.lines import Stream
from crewd.workers.transcript import Transcript

CHUNK_BYTES: Final = 256 * KIB


class RunArtifacts:
    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring

    def handlers(self) -> dict[str, Handler]:
        return {
            "ListArtifacts": unary(self._list, pb.ListArtifactsRequest.FromString),
            "ReadArtifact": stream(self._read, pb.ReadArtifactRequest.FromString),
        }

    async def _list(self, request: pb.ListArtifactsRequest, _context: Context) -> bytes:
        place = place_of(request, request)
        reads = self._wiring.reads
        which = ArtifactFilter(
            run_id=required("run_id", request.run_id),
            task_id=request.task_id,
            kinds=_kinds(request),
        )
        if await reads.get_run(which.run_id) is None:
            raise run_not_found(which.run_id)
        page = await gather(place, partial(reads.list_artifacts, which), _encode)
        rest = pb.ListArtifactsResponse(
            next_page_token=place.token(page.next), as_of_sequence=page.as_of_sequence
        )
        return repeated(ITEMS_TAG, page.items) + rest.SerializeToString()

    async def _read(self, request: pb.ReadArtifactRequest, context: Context) -> None:
        if request.limit < 0:
            raise invalid("limit", "is negative; 0 means no limit")
        artifact = await self._find(request)
        reading = _Reading(self._wiring, artifact, request, context)
        if artifact.kind is ArtifactKind.TRANSCRIPT and not artifact.sha256:
            await reading.copy_transcript()
        else:
            await reading.copy_file()

    async def _find(self, request: pb.ReadArtifactRequest) -> Artifact:
        reads, run_id = self._wiring.reads, request.run_id
        if request.artifact_id:
            if request.name:
                raise invalid("name", "is not taken together with artifact_id")
            found = await reads.get_artifact(request.artifact_id)
            if found is None or (run_id and found.run_id != run_id):
                raise artifact_not_found(artifact_id=request.artifact_id)
            return found
        required("run_id", run_id)
        found = await reads.latest_artifact(run_id, required("name", request.name))
        if found is None and await reads.get_run(run_id) is None:
            raise run_not_found(run_id)
        if found is None:
            raise artifact_not_found(run_id=run_id, name=request.name)
        return found


def _encode(row: Artifact) -> bytes:
    return convert.artifact(row).SerializeToString()


def _kinds(request: pb.ListArtifactsRequest) -> frozenset[ArtifactKind]:
    violations = [
        Violation(f"kinds[{index}]", f"{number} is not a kind of artifact")
        for index, number in enumerate(request.kinds)
        if number not in enums.TO_ARTIFACT_KIND
    ]
    if violations:
        raise CrewdError(Reason.SPEC_INVALID, violations[0].description, violations=violations)
    return frozenset(enums.TO_ARTIFACT_KIND[number] for number in request.kinds)


class _Piece(NamedTuple):
    offset: int
    data: bytes
    next_offset: int
    truncated_before: bool = False


class _Reading:
    """One call."""

    def __init__(
        self,
        wiring: Wiring,
        artifact: Artifact,
        request: pb.ReadArtifactRequest,
        context: Context,
    ) -> None:
        self._wiring = wiring
        self._artifact = artifact
        self._context = context
        self._size = artifact.size_bytes
        self._offset = self._begin(request.offset)
        end = self._offset + request.limit if request.limit else self._size
        self._end = min(end, self._size)
        """Where to stop."""

    async def copy_file(self) -> None:
        """Send the bytes as they were kept. ARTIFACT_DAMAGED if they are not."""
        row = self._artifact
        files = self._wiring.artifacts
        try:
            opened = await asyncio.to_thread(files.open, row.run_id, row.sha256)
        except OSError as error:
            self._refuse(f"its file cannot be opened: {error.strerror}")
        try:
            if opened.size != self._size:
                self._refuse(f"it has {opened.size} bytes, {self._size} were kept")
            whole = (self._offset, self._end) == (0, self._size)
            digest = sha256() if whole else None

            def read(offset: int, limit: int) -> _Piece:
                data = opened.read(offset, limit)
                if not data and limit:
                    self._refuse("it became shorter while it was read")
                if digest is not None:
                    digest.update(data)
                    at_end = offset + len(data) == self._size
                    if at_end and digest.hexdigest() != row.sha256:
                        self._refuse("its bytes are not those that were kept")
                return _Piece(offset, data, offset + len(data))

            await self._copy(read)
        finally:
            opened.close()

    async def copy_transcript(self) -> None:
        """Send what the attempt wrote to stdout, as far as it is kept."""
        row = self._artifact
        transcript = Transcript(
            self._wiring.transcripts,
            (row.run_id, row.task_id, row.attempt),
            lengths=(self._size, 0),
        )

        def read(offset: int, limit: int) -> _Piece:
            chunk = transcript.read(Stream.STDOUT, offset, limit)
            cut = chunk.truncated_before or chunk.truncated
            return _Piece(chunk.offset, chunk.data, chunk.next_offset, cut)

        await self._copy(read)

    async def _copy(self, read: Callable[[int, int], _Piece]) -> None:
        """Send at least one response; the first one has the artifact."""
        artifact = convert.artifact(self._artifact)
        offset = self._offset
        while True:
            piece = await asyncio.to_thread(read, offset, min(CHUNK_BYTES, self._end - offset))
            response = pb.ReadArtifactResponse(
                artifact=artifact if offset == self._offset else None,
                offset=piece.offset,
                data=piece.data,
                next_offset=piece.next_offset,
                eof=piece.next_offset >= self._size,
                truncated_before=piece.truncated_before,
            )
            await self._context.write(response.SerializeToString())
            offset = piece.next_offset
            if offset >= self._end:
                return
            if self._wiring.presence.draining is not None:
                raise draining()

    def _begin(self, offset: int) -> int:
        if offset < 0:
            return max(0, self._size + offset)
        if offset > self._size:
            raise offset_out_of_range(offset, self._size, "artifact")
        return offset

    def _refuse(self, why: str) -> NoReturn:
        row = self._artifact
        raise CrewdError(
            Reason.ARTIFACT_DAMAGED,
            f"artifact {row.id} ({row.name}) cannot be read: {why}",
            artifact_id=row.id,
        )
