"""Who calls: the operator or a worker, proven by a token, and the program they use."""

from __future__ import annotations

import getpass
import hmac
import os
from collections.abc import Callable, Iterable
from typing import Final

from crewd.core.errors import CrewdError, Reason
from crewd.core.model import Actor
from crewd.core.words import ActorKind
from crewd.refusal import Refusal
from crewd.rpc.wire import cut
from crewd.runtime.jobs import JobKey
from crewd.runtime.tokens import PREFIX, TaskTokens

CLIENT_KEY: Final = "x-crewd-client"
WORKER_SERVICE: Final = "crewd.v1.WorkerService"
"""What a worker may call, and nobody else."""
_KEY: Final = "authorization"
_SCHEME: Final = "bearer "
_CLIENT_BYTES: Final = 100

Metadata = Iterable[tuple[str, str | bytes]]


class Auth:
    """Knows the operator's token and those of workers. Only health is told to everyone.

    `read_token` reads the operator's anew, or refuses: who sends another may know a later one.
    """

    def __init__(self, token: str, tasks: TaskTokens, read_token: Callable[[], str]) -> None:
        self._token = token.encode()
        self._tasks = tasks
        self._read_token = read_token
        self._user = _user()

    def check(self, method: str, metadata: Metadata) -> None:
        """Raise TOKEN_MISSING, TOKEN_INVALID or SCOPE_DENIED unless the caller may call this.

        Whether the attempt of a worker's token still lives is for the call itself to find out.
        """
        token = _token_of(metadata)
        if not token:
            raise CrewdError(
                Reason.TOKEN_MISSING,
                "no token was sent; send metadata `authorization: Bearer <token>`",
            )
        of_worker = method.startswith(f"/{WORKER_SERVICE}/")
        if token.startswith(PREFIX):
            self.job(metadata)
            if not of_worker:
                message = f"a task's token does not allow {method}: a worker may only call for its"
                raise _denied(f"{message} own task, with WorkerService", method)
            return
        self._check_operators(token.encode())
        if of_worker:
            message = f"{method} is for workers: the operator's token belongs to no task"
            raise _denied(message, method)

    def _check_operators(self, token: bytes) -> None:
        if hmac.compare_digest(token, self._token):
            return
        message = "this is not the token of this daemon; `crewd token` shows it"
        try:
            self._token = self._read_token().encode()
        except Refusal as refusal:
            raise CrewdError(
                Reason.TOKEN_INVALID, f"{message}, but {refusal.message}; {refusal.hint}"
            ) from refusal
        if not hmac.compare_digest(token, self._token):
            raise CrewdError(Reason.TOKEN_INVALID, message)

    def actor(self, metadata: Metadata) -> Actor:
        """Return the operator, with the program as it names itself."""
        return Actor(ActorKind.OPERATOR, self._user, _client(metadata))

    def job(self, metadata: Metadata) -> JobKey:
        """Return the attempt the caller is the worker of. TOKEN_INVALID for a forged token."""
        job = self._tasks.read(_token_of(metadata))
        if job is None:
            message = "this is not a token that this daemon gave to a worker"
            raise CrewdError(Reason.TOKEN_INVALID, message)
        return job

    def worker(self, metadata: Metadata) -> Actor:
        """Return the worker, named by its attempt."""
        return Actor(ActorKind.WORKER, str(self.job(metadata)), _client(metadata))


def _denied(message: str, method: str) -> CrewdError:
    return CrewdError(Reason.SCOPE_DENIED, message, method=method)


def _client(metadata: Metadata) -> str:
    return cut(_value(metadata, CLIENT_KEY), _CLIENT_BYTES)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def _token_of(metadata: Metadata) -> str:
    value = _value(metadata, _KEY)
    return value[len(_SCHEME) :].strip() if value.lower().startswith(_SCHEME) else ""


def _value(metadata: Metadata, key: str) -> str:
    for name, value in metadata:
        if name == key:
            return value if isinstance(value, str) else value.decode(errors="replace")
    return ""
