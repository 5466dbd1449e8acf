from __future__ import annotations

import asyncio
import os
import socket as sockets
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import grpc
import grpc.aio
from google.protobuf.message import Message

from crewd_client import locate
from crewd_client._fields import named
from crewd_client.errors import CrewdError, NoDaemonError, UnavailableError, translate

DEADLINE = timedelta(seconds=10)
_OPTIONS = (
    ("grpc.default_authority", "localhost"),
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.use_local_subchannel_pool", 1),
)
_FIRST_WAIT = 0.05
_LONGEST_WAIT = 1.0

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)
Metadata = tuple[tuple[str, str], ...]


class Connection:
    """The way to the daemon. Looks like a channel to the generated stubs.

    Every call carries the token; unary ones have a deadline and are tried again while the daemon is
    away, if it is safe; errors come translated.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        *,
        state_dir: locate.StrPath | None,
        socket: locate.StrPath | None,
        client_name: str,
    ) -> None:
        self._env = env
        self._state_dir = state_dir
        self._socket = socket
        self._client_name = client_name
        self._channels: list[grpc.aio.Channel] = []
        self.location = self._find()
        # A daemon that was there may come back; one that never answered is not waited for.
        self.answered = False
        self._open()

    @property
    def channel(self) -> grpc.aio.Channel:
        return self._channels[-1]

    @property
    def metadata(self) -> Metadata:
        token = self.location.token
        given = (("authorization", f"Bearer {token}"),) if token is not None else ()
        return (*given, ("x-crewd-client", self._client_name))

    def refresh(self) -> None:
        """Look again where the daemon is: a new one may have another socket or token."""
        socket = self.location.socket
        self.location = self._find()
        if self.location.socket != socket:
            self._open()

    async def close(self) -> None:
        for channel in self._channels:
            await channel.close()

    def unary_unary(
        self,
        method: str,
        request_serializer: Callable[[Q], bytes],
        response_deserializer: Callable[[bytes], R],
        **_registered: bool,
    ) -> _UnaryCall[Q, R]:
        return _UnaryCall(self, method, request_serializer, response_deserializer)

    def unary_stream(
        self,
        method: str,
        request_serializer: Callable[[Q], bytes],
        response_deserializer: Callable[[bytes], R],
        **_registered: bool,
    ) -> _StreamCall[Q, R]:
        return _StreamCall(self, method, request_serializer, response_deserializer)

    def _find(self) -> locate.Location:
        try:
            return locate.find(self._env, state_dir=self._state_dir, socket=self._socket)
        except locate.LocateError as error:
            raise NoDaemonError(code=grpc.StatusCode.UNAVAILABLE, message=str(error)) from None

    def _open(self) -> None:
        target = f"unix:{quote(str(self.location.socket))}"
        self._channels.append(grpc.aio.insecure_channel(target, options=_OPTIONS))


class _Call(Generic[Q, R]):
    """A method of the daemon, as a generated stub makes it."""

    def __init__(
        self,
        connection: Connection,
        method: str,
        serialize: Callable[[Q], bytes],
        deserialize: Callable[[bytes], R],
    ) -> None:
        self._connection = connection
        self._method = method
        self._serialize = serialize
        self._deserialize = deserialize


class _UnaryCall(_Call[Q, R]):
    async def __call__(
        self,
        request: Q,
        *,
        timeout: float | None = None,  # noqa: ASYNC109  # the deadline travels with the call
        metadata: Iterable[tuple[str, str]] = (),
    ) -> R:
        clock = asyncio.get_running_loop().time
        end = clock() + (DEADLINE.total_seconds() if timeout is None else timeout)
        last_try = min(end, clock() + DEADLINE.total_seconds())
        request = _with_request_id(request)
        waits = backoff()
        while True:
            try:
                return await self._once(request, max(end - clock(), 0.001), tuple(metadata))
            except UnavailableError as error:
                wait = pause_after(error, waits)
                absent = (
                    isinstance(error, NoDaemonError)
                    and not error.metadata
                    and not self._connection.answered
                )
                if absent or clock() + wait > last_try:
                    raise
            await asyncio.sleep(wait)
            self._connection.refresh()

    async def _once(self, request: Q, seconds: float, metadata: Metadata) -> R:
        connection = self._connection
        call = connection.channel.unary_unary(self._method, self._serialize, self._deserialize)
        try:
            response = await call(
                request, timeout=seconds, metadata=(*connection.metadata, *metadata)
            )
        except grpc.aio.AioRpcError as error:
            raise named(_ours(error, connection), request) from None
        connection.answered = True
        return response


class _StreamCall(_Call[Q, R]):
    async def __call__(
        self,
        request: Q,
        *,
        timeout: float | None = None,  # noqa: ASYNC109  # the deadline travels with the call
        metadata: Iterable[tuple[str, str]] = (),
    ) -> AsyncIterator[R]:
        connection = self._connection
        method = connection.channel.unary_stream(self._method, self._serialize, self._deserialize)
        call = method(request, timeout=timeout, metadata=(*connection.metadata, *metadata))
        try:
            async for response in call:
                connection.answered = True
                yield response
        except grpc.aio.AioRpcError as error:
            raise named(_ours(error, connection), request) from None
        finally:
            call.cancel()


def backoff() -> Iterator[float]:
    """Give the seconds to wait before each further try."""
    wait = _FIRST_WAIT
    while True:
        yield wait
        wait = min(wait * 2, _LONGEST_WAIT)


def pause_after(error: CrewdError, waits: Iterator[float]) -> float:
    """Wait as the daemon asked, else a little longer each time."""
    wait = next(waits)
    return wait if error.retry_after is None else error.retry_after.total_seconds()


def _with_request_id(request: Q) -> Q:
    # Any: generated classes have no common type for a field by name.
    fields: Any = request
    if "request_id" not in request.DESCRIPTOR.fields_by_name or fields.request_id:
        return request
    copy: Any = type(request)()
    copy.CopyFrom(request)
    copy.request_id = os.urandom(16).hex()
    return copy  # type: ignore[no-any-return]


def _ours(error: grpc.aio.AioRpcError, connection: Connection) -> CrewdError:
    ours = translate(error)
    if ours.reason == "TOKEN_MISSING" and connection.location.token is None:
        source = connection.location.token_source
        ours.message = f"no token for the daemon at {connection.location.socket}: {source}"
    if ours.code is grpc.StatusCode.DEADLINE_EXCEEDED and not connection.answered:
        ours = NoDaemonError(code=grpc.StatusCode.UNAVAILABLE, message="")
    if isinstance(ours, NoDaemonError):
        location = connection.location
        ours.message = f"no daemon answers at {location.socket}"
        pid = _hung(location)
        if pid is not None:
            ours.message = f"the daemon (pid {pid}) at {location.socket} does not answer"
            ours.metadata = {"pid": str(pid)}
    return ours


def _hung(location: locate.Location) -> int | None:
    """Give the pid of a daemon that lives and takes connections."""
    if location.daemon is None:
        return None
    try:
        os.kill(location.daemon.pid, 0)
    except PermissionError:
        pass
    except (OSError, OverflowError):
        return None
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(location.socket))
        except BlockingIOError:
            # Its queue is full: it takes nobody in.
            pass
        except OSError:
            return None
    return location.daemon.pid
