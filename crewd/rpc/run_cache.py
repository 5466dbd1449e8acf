"""Runs as they go over the wire, kept until they change: a list of a thousand costs its keys."""

from __future__ import annotations

from typing import Final

from crewd.core.units import Instant
from crewd.rpc import convert
from crewd.store import Listed, Page, Reads, RunFilter

KEPT: Final = 4096
"""About two MiB of encoded runs."""


class RunCache:
    """Encoded runs by id, each with the time of the change it shows."""

    def __init__(self, reads: Reads) -> None:
        self._reads = reads
        self._encoded: dict[str, tuple[Instant, bytes]] = {}

    async def page(self, which: RunFilter, page: Page) -> Listed[bytes]:
        """Return a page of encoded runs. One that is deleted meanwhile is left out."""
        listed = await self._reads.list_run_versions(which, page)
        fresh = {
            version.id: self._encoded[version.id][1]
            for version in listed.rows
            if self._encoded.get(version.id, (None,))[0] == version.update_time
        }
        missing = [version.id for version in listed.rows if version.id not in fresh]
        for run in await self._reads.get_runs(missing) if missing else ():
            fresh[run.id] = convert.run(run).SerializeToString()
            self._encoded.pop(run.id, None)
            self._encoded[run.id] = run.update_time, fresh[run.id]
        while len(self._encoded) > KEPT:
            del self._encoded[next(iter(self._encoded))]
        rows = [fresh[version.id] for version in listed.rows if version.id in fresh]
        return Listed(rows=rows, next=listed.next, as_of_sequence=listed.as_of_sequence)
