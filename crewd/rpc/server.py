"""The grpc server at a unix socket: services, health, reflection."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from crewd.rpc import ask_service, catalog_service, daemon_service, run_service, worker_service
from crewd.rpc.ask_service import AskService
from crewd.rpc.calls import service
from crewd.rpc.catalog_service import CatalogService
from crewd.rpc.daemon_service import REQUEST_BYTES, DaemonService
from crewd.rpc.interceptor import Interceptor
from crewd.rpc.ports import Wiring
from crewd.rpc.run_service import RunService
from crewd.rpc.worker_service import WorkerService

SERVICES: Final = (
    run_service.NAME,
    ask_service.NAME,
    worker_service.NAME,
    catalog_service.NAME,
    daemon_service.NAME,
)
_PRIVATE_FOLDER: Final = 0o700
_PRIVATE_SOCKET: Final = 0o600
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", REQUEST_BYTES),
    ("grpc.max_send_message_length", -1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.so_reuseport", 0),
)


class SocketError(Exception):
    """The socket cannot be bound, or others could reach it."""


class Server:
    """Made on the event loop, at most one for a socket: the lock beside it is taken before."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._server = grpc.aio.server(interceptors=(Interceptor(wiring),), options=_OPTIONS)
        self._server.add_generic_rpc_handlers(
            (
                service(run_service.NAME, RunService(wiring).handlers()),
                service(ask_service.NAME, AskService(wiring).handlers()),
                service(worker_service.NAME, WorkerService(wiring).handlers()),
                service(catalog_service.NAME, CatalogService(wiring).handlers()),
                service(daemon_service.NAME, DaemonService(wiring).handlers()),
            )
        )
        self._health: Any = cast("Any", health).aio.HealthServicer()
        cast("Any", health_pb2_grpc).add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection(
            (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME), self._server
        )

    async def start(self) -> None:
        """Bind and answer: health says NOT_SERVING, and only GetServerInfo is served."""
        await self.set_serving(serving=False)
        _bind(self._server, self._wiring.identity.socket)
        await self._server.start()

    async def set_serving(self, *, serving: bool) -> None:
        """Take calls, once recovery has finished."""
        self._wiring.presence.recovered = serving
        kinds = health_pb2.HealthCheckResponse.ServingStatus
        status = kinds.SERVING if serving else kinds.NOT_SERVING
        for name in ("", *SERVICES):
            await self._health.set(name, status)

    async def stop(self, reason: str, *, restart_expected: bool, grace_seconds: float) -> None:
        """Say the last word on every stream; calls get so long to end."""
        self._wiring.presence.announce_end(reason, restart_expected=restart_expected)
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace_seconds)


def _bind(server: grpc.aio.Server, socket: Path) -> None:
    """Bind so that nobody else can reach the socket at any moment."""
    socket.parent.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
    folder = socket.parent.stat()
    if folder.st_uid != os.getuid() or stat.S_IMODE(folder.st_mode) & ~_PRIVATE_FOLDER:
        raise SocketError(
            f"{socket.parent} can be entered by others, and so could the socket; "
            "put it into a folder of its own with mode 700"
        )
    before = os.umask(~_PRIVATE_SOCKET & 0o777)
    try:
        server.add_insecure_port(f"unix:{quote(str(socket))}")
    except RuntimeError as error:
        raise SocketError(f"{socket} cannot be bound: {error}") from error
    finally:
        os.umask(before)
    if stat.S_IMODE(socket.stat().st_mode) != _PRIVATE_SOCKET:
        raise SocketError(f"{socket} has not the mode 0600 although it was bound so")
