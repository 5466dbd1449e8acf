"""Jobs that are to have the process of another one, until the host has said what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from crewd.workers.host_news import HostSnapshot, StartRefused


class Passes:
    """What was asked for and never answered is decided by what the host has when it is back."""

    def __init__(self) -> None:
        self._open: dict[str, None] = {}

    def ask(self, job: str) -> None:
        self._open[job] = None

    def answered(self, job: str) -> None:
        self._open.pop(job, None)

    def take(self) -> list[str]:
        """Return what was asked until now, and begin anew."""
        taken = list(self._open)
        self._open.clear()
        return taken

    def not_in(self, snapshot: HostSnapshot, jobs: Iterable[str]) -> Iterator[StartRefused]:
        """Refuse those of the jobs that the host does not know and that nobody asks for again."""
        for job in jobs:
            known = job in snapshot.jobs or job in snapshot.exits or job in snapshot.lost
            if not known and job not in self._open:
                yield not_passed(job, "the host was gone before it answered")


def not_passed(job: str, message: str) -> StartRefused:
    return StartRefused(job, "not_passed", message)
