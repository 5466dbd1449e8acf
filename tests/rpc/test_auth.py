from __future__ import annotations

from collections.abc import Callable

import pytest

from crewd.core.errors import CrewdError, Reason
from crewd.refusal import Refusal
from crewd.rpc.auth import Auth
from crewd.runtime.tokens import TaskTokens

METHOD = "/crewd.v1.RunService/ListRuns"


def an_auth(read_token: Callable[[], str]) -> Auth:
    return Auth("first", TaskTokens(b"key"), read_token)


def sent(token: str) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {token}")]


def test_a_token_that_was_replaced_counts_from_its_first_use() -> None:
    auth = an_auth(lambda: "second")
    auth.check(METHOD, sent("first"))

    auth.check(METHOD, sent("second"))

    with pytest.raises(CrewdError, match="not the token") as refused:
        auth.check(METHOD, sent("first"))
    assert refused.value.reason is Reason.TOKEN_INVALID


def test_a_token_file_that_cannot_be_used_is_told() -> None:
    def refuse() -> str:
        raise Refusal("others can read the token", hint="remove it")

    with pytest.raises(CrewdError, match="others can read the token; remove it"):
        an_auth(refuse).check(METHOD, sent("second"))
