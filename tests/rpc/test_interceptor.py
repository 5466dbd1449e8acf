from __future__ import annotations

import grpc
import pytest
from grpc_health.v1 import health_pb2

from crewd.v1 import daemon_service_pb2, run_service_pb2, run_stream_pb2
from tests.rpc.world import AUTH, PATIENCE, TOKEN, World, refused

INFO = daemon_service_pb2.GetServerInfoRequest()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "TOKEN_MISSING"),
        (TOKEN, "TOKEN_MISSING"),
        (f"Basic {TOKEN}", "TOKEN_MISSING"),
        ("Bearer wrong", "TOKEN_INVALID"),
        ("Bearer crewt_abc", "TOKEN_INVALID"),
    ],
)
async def test_no_call_goes_without_the_operators_token(
    world: World, value: str | None, reason: str
) -> None:
    metadata = () if value is None else (("authorization", value),)
    unary = await refused(world.daemon.GetServerInfo(INFO, metadata=metadata))
    stream = world.runs.WatchRuns(run_stream_pb2.WatchRunsRequest(), metadata=metadata)
    assert unary.reason == (await refused(anext(aiter(stream)))).reason == reason


async def test_reflection_needs_the_token_and_health_does_not(world: World) -> None:
    channel = world.channel()
    check = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    healthy = await check(health_pb2.HealthCheckRequest(service="crewd.v1.RunService"))
    reflect: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
    )
    call = reflect(timeout=PATIENCE)
    assert healthy.status == health_pb2.HealthCheckResponse.SERVING
    assert (await refused(call.read())).reason == "TOKEN_MISSING"


async def test_before_recovery_only_the_daemon_itself_is_told_of(world: World) -> None:
    await world.server.set_serving(serving=False)
    info = await world.daemon.GetServerInfo(INFO, metadata=AUTH)
    runs = run_service_pb2.ListRunsRequest()
    assert info.server.status == 1
    assert (await refused(world.runs.ListRuns(runs, metadata=AUTH))).reason == "RECOVERING"


async def test_a_draining_daemon_is_read_and_takes_no_new_work(world: World) -> None:
    world.supervisor.told.draining = True
    runs = world.runs
    await runs.ListRuns(run_service_pb2.ListRunsRequest(), metadata=AUTH)
    create = await refused(runs.CreateRun(run_service_pb2.CreateRunRequest(), metadata=AUTH))
    cancel = run_service_pb2.CancelRunRequest(run_id="run_x")
    assert (create.reason, create.code) == ("DRAINING", grpc.StatusCode.UNAVAILABLE)
    assert (await refused(runs.CancelRun(cancel, metadata=AUTH))).reason == "RUN_NOT_FOUND"


async def test_a_field_that_is_not_known_here_is_refused_in_writes_wherever_it_is(
    world: World,
) -> None:
    # Field 200, a string, in tasks[1] of the spec.
    task = b"\x0a\x01a" + b"\xc2\x0c\x03new"
    spec = b"\x1a\x03\x0a\x01b" + b"\x1a" + bytes([len(task)]) + task
    raw = run_service_pb2.CreateRunRequest.FromString(b"\x1a" + bytes([len(spec)]) + spec)
    got = await refused(world.runs.CreateRun(raw, metadata=AUTH))
    assert (got.reason, got.metadata) == ("UNKNOWN_FIELD", {"field": "spec.tasks[1].200"})
    assert got.fields == ["spec.tasks[1].200"]


async def test_a_bug_is_told_as_an_incident_and_nothing_else(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(world.wiring.reads, "get_run", broken)
    got = await refused(
        world.runs.GetRun(run_service_pb2.GetRunRequest(run_id="run_x"), metadata=AUTH)
    )
    assert (got.code, got.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
    assert got.metadata["incident_id"] in got.message


async def test_every_answer_tells_the_version(world: World) -> None:
    call = world.daemon.GetServerInfo(INFO, metadata=AUTH)
    await call
    assert dict(await call.trailing_metadata())["x-crewd-version"] == "0.1.0"
