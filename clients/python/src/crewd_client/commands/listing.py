"""Rows of one kind on stdout: a table once, or a line each as they change; JSON if asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Generic, TypeVar

from crewd_client.commands.exits import Exit
from crewd_client.commands.terminal import note, put, put_json, put_table
from crewd_client.json import to_json
from crewd_client.v1.ask_pb2 import Ask
from crewd_client.v1.run_pb2 import Run
from crewd_client.watch import Change

M = TypeVar("M", Run, Ask)


class Listing(Generic[M]):
    """How rows of one kind are shown."""

    def __init__(
        self, heads: Sequence[str], cells: Callable[[M], list[str]], *, nothing: str, gone: str = ""
    ) -> None:
        self._heads = heads
        self._cells: Callable[[M], list[str]] = cells
        self._nothing = nothing
        self._gone = gone

    def put(self, rows: Iterable[M], *, as_json: bool) -> None:
        shown = list(rows)
        if as_json:
            for row in shown:
                put_json(to_json(row))
        elif shown:
            put_table(self._heads, [self._cells(row) for row in shown])
        else:
            note(self._nothing)

    async def follow(self, changes: AsyncIterator[Change[M]], *, as_json: bool) -> int:
        """Show all there is, then each again whenever it changes."""
        async for change in changes:
            if as_json or change.complete:
                self.put(change.items, as_json=as_json)
                continue
            for row in change.items:
                put("  ".join(self._cells(row)))
            for gone in change.removed_ids if self._gone else ():
                put(f"{gone}  {self._gone}")
        return Exit.DONE
