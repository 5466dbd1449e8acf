"""Which run or ask is meant: an id, a unique beginning of one, or nothing at all."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterable, Sequence
from typing import TypeVar

from crewd_client.client import Client
from crewd_client.commands.exits import Exit, Refusal
from crewd_client.commands.terminal import shorten, word
from crewd_client.pages import list_asks, list_runs
from crewd_client.v1.ask_pb2 import Ask
from crewd_client.v1.run_pb2 import Run, RunFilter

T = TypeVar("T", Run, Ask)

PAGE = 1000
_SHOWN = 8


async def pick_run(client: Client, given: str | None) -> str:
    """Give the id of the run; without a word, of the newest one of this directory."""
    if given is None:
        return await _newest_here(client)
    if _FULL_ID.fullmatch(given):
        return given
    return await _by_prefix(list_runs(client, page_size=PAGE), given, "run")


async def pick_ask(client: Client, given: str) -> str:
    if _FULL_ID.fullmatch(given):
        return given
    return await _by_prefix(list_asks(client, page_size=PAGE), given, "ask")


_FULL_ID = re.compile(r"(?:run|ask)_[a-z2-7]{10}")


async def _newest_here(client: Client) -> str:
    here = os.getcwd()  # noqa: PTH109  # without symbolic links, as the daemon writes it
    newest: Run | None = None
    async for run in list_runs(client, RunFilter(cwd=here), page_size=PAGE):
        if newest is None or _created(run) > _created(newest):
            newest = run
    if newest is None:
        raise Refusal(f"there is no run of {here}", hint="see `crew ls -a`", code=Exit.REFUSED)
    return newest.id


async def _by_prefix(items: AsyncIterable[T], given: str, kind: str) -> str:
    beginnings = (given, f"{kind}_{given}")
    seen = [item async for item in items]
    found = [item for item in seen if item.id.startswith(beginnings)]
    if len(found) == 1:
        return found[0].id
    detail: dict[str, object] = {"candidates": [item.id for item in (found or seen)[:_SHOWN]]}
    if found:
        raise Refusal(
            f"{given!r} may be any of {len(found)} {kind}s:\n{_list(found)}", detail=detail
        )
    others = f"; there are:\n{_list(seen)}" if seen else ""
    raise Refusal(
        f"no {kind} begins with {given!r}{others}",
        code=Exit.REFUSED,
        detail={"reason": f"{kind.upper()}_NOT_FOUND", **detail},
    )


def _list(items: Sequence[Run | Ask]) -> str:
    lines = [f"  {item.id}  {word(item, 'status')}  {shorten(item.title, 50)}" for item in items]
    more = [f"  … and {len(items) - _SHOWN} more"] if len(items) > _SHOWN else []
    return "\n".join([*lines[:_SHOWN], *more])


def _created(run: Run) -> tuple[int, int]:
    return run.create_time.seconds, run.create_time.nanos
