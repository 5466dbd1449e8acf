from __future__ import annotations

from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import Message
from grpc.aio import UnaryStreamMultiCallable

from crewd.rpc.server import SERVICES
from crewd.runtime.tokens import TaskTokens
from crewd.v1 import attempt_pb2
from crewd.v1 import worker_service_pb2 as pb
from tests.rpc.workers import JOB, WORKER, Metadata, a_question, bearing, ended, working
from tests.rpc.world import AUTH, PATIENCE, World, refused

FORGED = bearing(TaskTokens(b"of somebody else").issue(JOB))
ACCESS = {"TOKEN_MISSING", "TOKEN_INVALID", "SCOPE_DENIED"}
CALLERS: dict[str, tuple[Metadata, str, str]] = {
    "nobody": ((), "TOKEN_MISSING", "TOKEN_MISSING"),
    "operator": (AUTH, "", "SCOPE_DENIED"),
    "worker": (WORKER, "SCOPE_DENIED", ""),
    "forger": (FORGED, "TOKEN_INVALID", "TOKEN_INVALID"),
    "late worker": (WORKER, "SCOPE_DENIED", "TOKEN_INVALID"),
}
REQUESTS: dict[str, Message] = {
    "CreateAsk": a_question(),
    "WaitAsk": pb.WaitAskRequest(ask_id="ask_x"),
    "ReportProgress": pb.ReportProgressRequest(step="one"),
    "RecordArtifact": pb.RecordArtifactRequest(name="n", data=b"d"),
    "SubmitResult": pb.SubmitResultRequest(outcome=attempt_pb2.OUTCOME_COMPLETED),
}


def methods() -> Iterator[MethodDescriptor]:
    for name in SERVICES:
        yield from Default().FindServiceByName(name).methods


async def reason_of(world: World, method: MethodDescriptor, metadata: Metadata) -> str:
    """Call the method; return why it was refused, if it was."""
    path = f"/{method.containing_service.full_name}/{method.name}"
    request = REQUESTS.get(method.name)
    data = b"" if request is None else request.SerializeToString()
    call: UnaryStreamMultiCallable[bytes, bytes] = world.channel().unary_stream(path)
    stream = call(data, metadata=metadata, timeout=PATIENCE)
    try:
        got = await refused(stream.read())
    except AssertionError:
        return ""
    finally:
        stream.cancel()
    assert got.reason != "SCOPE_DENIED" or got.metadata == {"method": path}
    return got.reason


@pytest.mark.parametrize("caller", CALLERS)
async def test_a_token_allows_what_it_is_for_and_nothing_else(world: World, caller: str) -> None:
    metadata, elsewhere, of_workers = CALLERS[caller]
    await working(world)
    if caller == "late worker":
        await ended(world)
    for method in methods():
        expected = of_workers if method.containing_service.name == "WorkerService" else elsewhere
        reason = await reason_of(world, method, metadata)
        assert (reason if reason in ACCESS else "") == expected, method.full_name


async def test_a_token_s_run_that_is_gone_makes_it_void(world: World) -> None:
    await working(world)
    world.supervisor.states.clear()
    call = world.workers.CreateAsk(a_question(), metadata=WORKER)
    assert (await refused(call)).reason == "TOKEN_INVALID"
