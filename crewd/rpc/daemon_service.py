"""DaemonService: who the daemon is, how it is, and its orderly end."""

from __future__ import annotations

import asyncio
from typing import Final

from crewd import __version__
from crewd.core.spec import Limits
from crewd.core.units import SECOND, Span, seconds
from crewd.rpc.calls import REQUEST_ID_BYTES, TEXT_BYTES, Context, Handler, bounded, unary
from crewd.rpc.checks import PROMPT_BYTES, TASKS_PER_RUN
from crewd.rpc.diagnose import diagnose, encode
from crewd.rpc.errors import invalid
from crewd.rpc.pages import LARGEST_SIZE
from crewd.rpc.ports import RuntimeInfo, Wiring
from crewd.rpc.wire import MIB, duration, span, stamp
from crewd.v1 import daemon_service_pb2 as pb
from crewd.v1 import server_pb2

NAME: Final = "crewd.v1.DaemonService"
API_VERSIONS: Final = ("crewd.v1",)
REQUEST_BYTES: Final = 16 * MIB


class DaemonService:
    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._drains: set[asyncio.Task[int]] = set()

    def handlers(self) -> dict[str, Handler]:
        return {
            "GetServerInfo": unary(self._get_server_info, pb.GetServerInfoRequest.FromString),
            "Drain": unary(self._drain, pb.DrainRequest.FromString),
            "Diagnose": unary(self._diagnose, pb.DiagnoseRequest.FromString),
        }

    async def _get_server_info(self, _request: pb.GetServerInfoRequest, _context: Context) -> bytes:
        wiring = self._wiring
        identity, info = wiring.identity, wiring.supervisor.info()
        counts = await wiring.reads.counts()
        server = server_pb2.ServerInfo(
            version=identity.version,
            api_versions=API_VERSIONS,
            features=identity.features,
            instance_id=identity.instance_id,
            store_id=identity.store_id,
            schema_version=identity.schema_version,
            host=_host(info),
            state_dir=str(identity.state_dir),
            socket=str(identity.socket),
            status=server_pb2.ServerStatus.Value(f"SERVER_STATUS_{wiring.status().upper()}"),
            open_runs=counts.open_runs,
            open_asks=counts.open_asks,
            heartbeat_interval=duration(seconds(wiring.heartbeat_seconds)),
            limits=_limits(info.max_workers),
            status_message=info.paused,
            restart_needed=identity.origin.is_replaced(),
        )
        stamp(server.start_time, identity.start_time)
        return pb.GetServerInfoResponse(server=server).SerializeToString()

    async def _drain(self, request: pb.DrainRequest, _context: Context) -> bytes:
        """Begin the end. It goes on when the client does not wait for it."""
        bounded("request_id", request.request_id, REQUEST_ID_BYTES)
        if request.mode not in pb.DrainMode.values():
            raise invalid("mode", f"this daemon has no mode {request.mode}")
        limit = span(request.timeout) if request.HasField("timeout") else None
        if limit is not None and limit < 0:
            raise invalid("timeout", "is negative")
        drain = asyncio.create_task(self._end(limit, wait=request.mode == pb.DRAIN_MODE_WAIT))
        self._drains.add(drain)
        drain.add_done_callback(self._drains.discard)
        running = await asyncio.shield(drain)
        return pb.DrainResponse(running_workers=running).SerializeToString()

    async def _diagnose(self, _request: pb.DiagnoseRequest, _context: Context) -> bytes:
        found = await diagnose(self._wiring)
        return pb.DiagnoseResponse(findings=map(encode, found)).SerializeToString()

    async def _end(self, limit: Span | None, *, wait: bool) -> int:
        try:
            async with asyncio.timeout(None if limit is None else limit / SECOND):
                return await self._wiring.drain(wait=wait)
        except TimeoutError:
            return await self._wiring.drain(wait=False)


def _host(info: RuntimeInfo) -> server_pb2.HostInfo:
    return server_pb2.HostInfo(
        version=info.host_version,
        protocol=info.host_protocol,
        pid=info.host_pid,
        running_workers=info.running_workers,
        restart_needed=info.host_version not in {"", __version__},
        message=info.host_message,
        status=server_pb2.HostStatus.Value(f"HOST_STATUS_{info.host_status.upper()}"),
    )


def _limits(max_workers: int) -> server_pb2.ServerLimits:
    return server_pb2.ServerLimits(
        request_bytes=REQUEST_BYTES,
        prompt_bytes=PROMPT_BYTES,
        answer_bytes=TEXT_BYTES,
        page_size=LARGEST_SIZE,
        tasks_per_run=TASKS_PER_RUN,
        max_concurrent_workers=max_workers,
        default_max_concurrent_workers=Limits().max_concurrent_workers,
    )
