"""Single calls to a running daemon, tried once: for the commands that manage it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import grpc

from crewd.doctor.finding import Finding, Severity
from crewd.refusal import Exit, Refusal
from crewd_client.locate import Location
from crewd_client.v1 import daemon_service_pb2, diagnosis_pb2, server_pb2
from crewd_client.v1.daemon_service_pb2_grpc import DaemonServiceStub

ServerInfo = server_pb2.ServerInfo
ServerStatus = server_pb2.ServerStatus
HostStatus = server_pb2.HostStatus
DrainMode = daemon_service_pb2.DrainMode

ANSWER_TIMEOUT = timedelta(seconds=5)
_OPTIONS = (("grpc.default_authority", "localhost"),)
_SEVERITY = "FINDING_SEVERITY_"
_ABSENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


class NotReachedError(Exception):
    """Nobody answers at the socket."""


def server_info(location: Location, timeout: timedelta = ANSWER_TIMEOUT) -> ServerInfo:
    """Ask who is there; refuse a daemon of another state directory than the one that is meant."""
    with _stub(location) as stub:
        request = daemon_service_pb2.GetServerInfoRequest()
        answer = stub.GetServerInfo(
            request, timeout=timeout.total_seconds(), metadata=_metadata(location)
        )
    if not location.is_served_by(answer.server.state_dir):
        raise Refusal(
            f"the daemon at {location.socket} is one of {answer.server.state_dir}, "
            f"not of {location.state_dir}",
            hint=f"name it with --state-dir {answer.server.state_dir}, or unset CREWD_SOCKET",
        )
    return answer.server


def meant_state_dir(location: Location) -> Path:
    """Tell whose daemon it is: where only the socket is named, the daemon itself must say."""
    return Path(server_info(location).state_dir)


def diagnose(location: Location, timeout: timedelta = ANSWER_TIMEOUT) -> list[Finding]:
    """Return what the daemon knows of its health."""
    with _stub(location) as stub:
        request = daemon_service_pb2.DiagnoseRequest()
        answer = stub.Diagnose(
            request, timeout=timeout.total_seconds(), metadata=_metadata(location)
        )
    return [_finding(told) for told in answer.findings]


def drain(
    location: Location,
    mode: DrainMode.ValueType,
    *,
    timeout: timedelta | None = None,
    patience: timedelta | None = None,
) -> int:
    """Make the daemon exit; return how many workers go on, when it is about to.

    `timeout` is how long it waits for workers, `patience` how long we wait for its answer.
    """
    request = daemon_service_pb2.DrainRequest(mode=mode)
    if timeout is not None:
        request.timeout.FromTimedelta(timeout)
    seconds = patience.total_seconds() if patience is not None else None
    with _stub(location) as stub:
        answer = stub.Drain(request, timeout=seconds, metadata=_metadata(location))
    return answer.running_workers


@contextmanager
def _stub(location: Location) -> Generator[DaemonServiceStub]:
    address = f"unix:{quote(str(location.socket))}"
    try:
        with grpc.insecure_channel(address, options=_OPTIONS) as channel:
            yield DaemonServiceStub(channel)
    except grpc.RpcError as error:
        raise _explained(error, location) from error


def _finding(told: diagnosis_pb2.Finding) -> Finding:
    severities = {diagnosis_pb2.FindingSeverity.Value(f"{_SEVERITY}{s.name}"): s for s in Severity}
    return Finding(
        id=told.id,
        severity=severities.get(told.severity, Severity.WARNING),
        message=told.message,
        command=told.command,
        details=dict(told.details),
    )


def _metadata(location: Location) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {location.token}"),) if location.token else ()


def _explained(error: grpc.RpcError, location: Location) -> Exception:
    code, details = error.code(), error.details() or ""
    if code in _ABSENT:
        return NotReachedError(details)
    if code is grpc.StatusCode.UNAUTHENTICATED:
        return Refusal(
            f"the daemon at {location.socket} ({location.socket_source}) does not know this token "
            f"({location.token_source})",
            hint="one of them is another daemon's: look at `crewd where` and your CREWD_ variables",
        )
    return Refusal(f"the daemon refused: {details or code.name.lower()}", exit_code=Exit.REFUSED)
