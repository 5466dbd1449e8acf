"""Who calls: the operator, proven by the token, and the program they use."""

from __future__ import annotations

import getpass
import hmac
import os
from collections.abc import Iterable
from typing import Final

from crewd.core.errors import CrewdError, Reason
from crewd.core.model import Actor, ActorKind
from crewd.rpc.wire import cut

CLIENT_KEY: Final = "x-crewd-client"
TASK_TOKEN_PREFIX: Final = "crewt_"  # noqa: S105 - what tells the kinds of token apart
_KEY: Final = "authorization"
_SCHEME: Final = "bearer "
_CLIENT_BYTES: Final = 100

Metadata = Iterable[tuple[str, str | bytes]]


class Auth:
    """Knows the operator's token. Only health is told to everyone."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()
        self._user = _user()

    def check(self, method: str, metadata: Metadata) -> None:
        """Raise TOKEN_MISSING, TOKEN_INVALID or SCOPE_DENIED unless the operator calls."""
        token = _token_of(metadata)
        if not token:
            raise CrewdError(
                Reason.TOKEN_MISSING,
                "no token was sent; send metadata `authorization: Bearer <token>`",
            )
        if token.startswith(TASK_TOKEN_PREFIX):
            raise CrewdError(
                Reason.SCOPE_DENIED,
                f"a task's token does not allow {method}",
                method=method,
            )
        if not hmac.compare_digest(token.encode(), self._token):
            raise CrewdError(
                Reason.TOKEN_INVALID, "this is not the token of this daemon; `crewd token` shows it"
            )

    def actor(self, metadata: Metadata) -> Actor:
        """Return the operator, with the program as it names itself."""
        return Actor(
            ActorKind.OPERATOR, self._user, cut(_value(metadata, CLIENT_KEY), _CLIENT_BYTES)
        )


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
