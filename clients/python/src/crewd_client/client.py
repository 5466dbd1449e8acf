from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Self, cast

import grpc
import grpc.aio

from crewd_client._connect import Connection
from crewd_client._version import __version__
from crewd_client.errors import NoDaemonError
from crewd_client.locate import Location, StrPath
from crewd_client.v1.ask_service_pb2_grpc import AskServiceStub
from crewd_client.v1.catalog_service_pb2_grpc import CatalogServiceStub
from crewd_client.v1.daemon_service_pb2 import GetServerInfoRequest
from crewd_client.v1.daemon_service_pb2_grpc import DaemonServiceStub
from crewd_client.v1.run_service_pb2_grpc import RunServiceStub
from crewd_client.v1.server_pb2 import ServerInfo
from crewd_client.v1.worker_service_pb2_grpc import WorkerServiceStub

if TYPE_CHECKING:
    from crewd_client.v1.ask_service_pb2_grpc import AskServiceAsyncStub
    from crewd_client.v1.catalog_service_pb2_grpc import CatalogServiceAsyncStub
    from crewd_client.v1.daemon_service_pb2_grpc import DaemonServiceAsyncStub
    from crewd_client.v1.run_service_pb2_grpc import RunServiceAsyncStub
    from crewd_client.v1.worker_service_pb2_grpc import WorkerServiceAsyncStub


class Client:
    """A connection to the daemon, with one property for each of its services.

    The services are the generated stubs: unary methods are awaited, streaming ones iterated. A
    write without a `request_id` gets one, so each call may be tried again safely.

        async with await Client.connect() as client:
            run = (await client.runs.GetRun(GetRunRequest(run_id=run_id))).run
    """

    def __init__(self, connection: Connection) -> None:
        # The stubs take anything that makes calls; their types speak of real channels only.
        channel = cast("grpc.aio.Channel", connection)
        self._connection = connection
        self._runs: RunServiceAsyncStub = RunServiceStub(channel)
        self._asks: AskServiceAsyncStub = AskServiceStub(channel)
        self._worker: WorkerServiceAsyncStub = WorkerServiceStub(channel)
        self._catalog: CatalogServiceAsyncStub = CatalogServiceStub(channel)
        self._daemon: DaemonServiceAsyncStub = DaemonServiceStub(channel)
        self._server: ServerInfo | None = None
        # Told true when a watch loses the daemon, and false when it is back.
        self.on_away: Callable[[bool], None] | None = None

    @classmethod
    async def connect(
        cls,
        *,
        state_dir: StrPath | None = None,
        socket: StrPath | None = None,
        env: Mapping[str, str] | None = None,
        client_name: str = f"crewd-client-python/{__version__}",
    ) -> Self:
        """Connect to the running daemon; `NoDaemonError` if none answers.

        With a task's token nothing is checked: the token allows that task's calls only.
        """
        connection = Connection(
            os.environ if env is None else env,
            state_dir=state_dir,
            socket=socket,
            client_name=client_name,
        )
        client = cls(connection)
        if not connection.location.task_token:
            try:
                await client._greet()
            except BaseException:
                await client.close()
                raise
        return client

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self.close()

    @property
    def runs(self) -> RunServiceAsyncStub:
        return self._runs

    @property
    def asks(self) -> AskServiceAsyncStub:
        return self._asks

    @property
    def worker(self) -> WorkerServiceAsyncStub:
        """What only a worker may call, for its own task; `Worker` is easier."""
        return self._worker

    @property
    def catalog(self) -> CatalogServiceAsyncStub:
        return self._catalog

    @property
    def daemon(self) -> DaemonServiceAsyncStub:
        return self._daemon

    @property
    def connection(self) -> Connection:
        """What makes the calls: for methods that have no stub here."""
        return self._connection

    @property
    def location(self) -> Location:
        return self._connection.location

    @property
    def server(self) -> ServerInfo | None:
        """What the daemon told of itself when the client connected."""
        return self._server

    def refresh(self) -> None:
        """Look again where the daemon is; calls do this by themselves when they try again."""
        self._connection.refresh()

    async def close(self) -> None:
        await self._connection.close()

    async def _greet(self) -> None:
        self._server = (await self._daemon.GetServerInfo(GetServerInfoRequest())).server
        location = self._connection.location
        if not location.is_served_by(self._server.state_dir):
            message = (
                f"the daemon at {location.socket} serves {self._server.state_dir}, "
                f"not {location.state_dir}"
            )
            raise NoDaemonError(code=grpc.StatusCode.UNAVAILABLE, message=message)
