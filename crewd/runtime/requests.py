"""Writes that carry a request id are carried out once, however often they are sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from crewd.core.errors import CrewdError, Reason
from crewd.runtime.actor import RequestKey
from crewd.store.entries import Request
from crewd.store.reads import Reads


class Requests:
    """Ids in flight in memory, ids done in the store."""

    def __init__(self, reads: Reads) -> None:
        self._reads = reads
        self._in_flight: dict[str, tuple[RequestKey, asyncio.Future[bytes]]] = {}

    async def once(self, key: RequestKey | None, act: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return what `act` returned the first time. Raises REQUEST_ID_REUSED for another body."""
        if key is None or not key.id:
            return await act()
        known = self._in_flight.get(key.id)
        if known is not None:
            check_same(key, known[0])
            return await asyncio.shield(known[1])
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_retrieve)
        self._in_flight[key.id] = key, future
        try:
            response = await self._first(key, act)
        except BaseException as error:
            if isinstance(error, CrewdError):
                future.set_exception(error)
            else:
                future.cancel()
            raise
        else:
            future.set_result(response)
            return response
        finally:
            del self._in_flight[key.id]

    async def _first(self, key: RequestKey, act: Callable[[], Awaitable[bytes]]) -> bytes:
        stored = await self._reads.find_request(key.id)
        if stored is None:
            return await act()
        check_same(key, stored)
        return stored.response


def check_same(key: RequestKey, known: RequestKey | Request) -> None:
    """Raise REQUEST_ID_REUSED when the id came with another method or body before."""
    if (known.method, known.digest) != (key.method, key.digest):
        run_id = known.run_id if isinstance(known, Request) else ""
        made = f" ({run_id})" if run_id else ""
        raise CrewdError(
            Reason.REQUEST_ID_REUSED,
            f"request id {key.id!r} was used before for another {known.method}{made}; use a new id",
            request_id=key.id,
            run_id=run_id,
        )


def _retrieve(future: asyncio.Future[bytes]) -> None:
    """Look at the outcome, since nobody else may be waiting for it."""
    if not future.cancelled():
        future.exception()
