"""What a worker hands in to be kept, by a call: checked, made durable, and only then recorded."""

from __future__ import annotations

import asyncio
from typing import Final

from crewd.core.errors import CrewdError, Reason
from crewd.core.model import Artifact
from crewd.core.reports import ArtifactGiven
from crewd.core.state import RunState
from crewd.core.words import ArtifactKind
from crewd.rpc import convert, enums
from crewd.rpc.checks import Problems
from crewd.rpc.errors import invalid
from crewd.rpc.wire import MIB
from crewd.runtime.keeping import Keeper
from crewd.v1 import worker_service_pb2 as pb
from crewd.workers.jsonl_artifacts import (
    CONTROL,
    DESCRIPTION_BYTES,
    MEDIA_TYPE,
    NAME_BYTES,
    OWN,
    PATH_BYTES,
    name_problem,
)

DATA_BYTES: Final = 8 * MIB


def checked_artifact(request: pb.RecordArtifactRequest) -> ArtifactGiven:
    """Return what is to be kept, without bytes that came with the request."""
    problems = Problems()
    name = problems.bounded("name", request.name, NAME_BYTES)
    if not name.strip():
        problems.add("name", "required")
    elif problem := name_problem(name):
        problems.add("name", problem)
    if CONTROL.search(name):
        problems.add("name", "has control characters")
    kind = problems.known("kind", request.kind, enums.TO_ARTIFACT_KIND, ArtifactKind.FILE)
    if kind in OWN:
        problems.add("kind", f"only crewd itself makes a {kind}")
    if request.media_type and not MEDIA_TYPE.fullmatch(request.media_type):
        problems.add("media_type", "is none, e.g. text/markdown")
    _check_content(request, problems)
    given = ArtifactGiven(
        name=name,
        path=request.path,
        kind=kind,
        media_type=request.media_type,
        description=problems.bounded("description", request.description, DESCRIPTION_BYTES),
    )
    problems.refuse()
    return given


async def kept(keeper: Keeper, request: pb.RecordArtifactRequest) -> Artifact:
    """Make it durable and return its row. DISK_LOW, or SPEC_INVALID for a file that is refused."""
    given = checked_artifact(request)
    data = request.data if request.WhichOneof("content") == "data" else None
    try:
        artifact = await asyncio.to_thread(keeper, given, data)
    except OSError as error:
        message = f"artifact {given.name} cannot be kept: {error.strerror}; free some space"
        raise CrewdError(Reason.DISK_LOW, message) from error
    if not isinstance(artifact, Artifact):
        raise invalid("path", artifact.message)
    return artifact


def rendered_artifact(artifact_id: str, state: RunState) -> bytes:
    """Return the response, from the state that has just recorded it."""
    row = next(each for each in reversed(state.changed.artifacts) if each.id == artifact_id)
    return pb.RecordArtifactResponse(artifact=convert.artifact(row)).SerializeToString()


def _check_content(request: pb.RecordArtifactRequest, problems: Problems) -> None:
    content = request.WhichOneof("content")
    if content is None:
        problems.add("path", "required: a path, or the data itself")
    elif content == "data":
        if len(request.data) > DATA_BYTES:
            problems.add("data", "has more than 8 MiB; write it to a file and name its path")
    elif not problems.bounded("path", request.path, PATH_BYTES) or "\0" in request.path:
        problems.add("path", "is empty, or has a NUL character")
