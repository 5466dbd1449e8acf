from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from grpc_health.v1 import health_pb2

from crewd.rpc.server import Server, SocketError
from crewd.v1 import daemon_service_pb2 as pb
from crewd.v1 import server_pb2
from tests.rpc.world import AUTH, PATIENCE, World, refused


async def test_nobody_else_can_reach_the_socket(world: World) -> None:
    socket = world.wiring.identity.socket
    assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700


async def test_a_folder_that_others_may_enter_is_refused(world: World) -> None:
    world.wiring.identity.socket.parent.chmod(0o755)
    with pytest.raises(SocketError, match="can be entered by others"):
        await Server(world.wiring).start()


async def test_the_daemon_tells_who_it_is_and_how(world: World) -> None:
    await world.create("run_a")
    info = (await world.daemon.GetServerInfo(pb.GetServerInfoRequest(), metadata=AUTH)).server
    assert (info.version, list(info.api_versions)) == ("0.1.0", ["crewd.v1"])
    assert (info.store_id, info.schema_version) == (world.log.store_id, world.log.schema_version)
    assert (info.host.status, info.host.pid, info.host.running_workers) == (2, 4242, 3)
    assert (info.status, info.open_runs, info.open_asks) == (server_pb2.SERVER_STATUS_SERVING, 1, 0)
    assert info.heartbeat_interval == Duration(seconds=15)
    assert (info.limits.request_bytes, info.limits.max_concurrent_workers) == (16 << 20, 16)
    assert info.state_dir == str(world.folder)


async def test_a_drain_says_what_goes_on_and_may_be_repeated(world: World) -> None:
    daemon = world.daemon
    for _ in range(2):
        drained = await daemon.Drain(pb.DrainRequest(), metadata=AUTH)
        assert drained.running_workers == 3
    waited = await daemon.Drain(pb.DrainRequest(mode=pb.DRAIN_MODE_WAIT), metadata=AUTH)
    negative = pb.DrainRequest(timeout=Duration(seconds=-1))
    assert (waited.running_workers, world.drains) == (3, [False, False, True])
    assert (await refused(daemon.Drain(negative, metadata=AUTH))).fields == ["timeout"]


async def test_health_follows_the_daemon(world: World) -> None:
    watch = world.channel().unary_stream(
        "/grpc.health.v1.Health/Watch",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    seen: AsyncIterator[health_pb2.HealthCheckResponse] = aiter(
        watch(health_pb2.HealthCheckRequest())
    )
    async with asyncio.timeout(PATIENCE):
        first = await anext(seen)
        await world.server.set_serving(serving=False)
        second = await anext(seen)
    assert (first.status, second.status) == (1, 2)


async def test_a_request_may_have_16_mib_and_no_more(world: World) -> None:
    raw: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = world.channel().unary_unary(
        "/crewd.v1.RunService/GetRun"
    )
    with pytest.raises(Exception, match="larger than max"):
        await raw(b"\x0a" + b"\x80\x80\x80\x09" + b"x" * (18 << 20), metadata=AUTH)


async def test_reflection_lists_the_services(world: World) -> None:
    reflect: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = world.channel().stream_stream(
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
    )
    call = reflect(metadata=AUTH)
    async with asyncio.timeout(PATIENCE):
        await call.write(b"\x3a\x00")
        answer = await call.read()
    assert isinstance(answer, bytes)
    assert b"crewd.v1.RunService" in answer
