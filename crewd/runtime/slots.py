"""Who may start a worker: one pool for the machine, shared fairly between runs.

Nothing here is stored: a run's use is what its live attempts say, told again after each drain.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable


class Slots:
    """Grants slots to runs.

    A run that waits for a person gives its slots back, and may hold more than its share for a
    while when it is answered; nothing new starts until the count is below the cap again.
    """

    def __init__(self, cap: int, nudge: Callable[[str], None]) -> None:
        self.cap = cap
        self.open = True
        """False while nothing may start: the daemon drains."""
        self._nudge = nudge
        self._used: dict[str, int] = {}
        self._total = 0
        self._waiting: OrderedDict[str, None] = OrderedDict()

    @property
    def total(self) -> int:
        return self._total

    def take(self, run_id: str, wanted: int) -> int:
        """Grant up to this many. A run that got fewer is nudged when there is room again."""
        self._waiting.pop(run_id, None)
        if not self.open:
            return 0
        granted = max(0, min(wanted, self.cap - self._total, self._share(run_id)))
        self._set(run_id, self._used.get(run_id, 0) + granted)
        if granted < wanted:
            self._waiting[run_id] = None
        else:
            self._offer(run_id)
        return granted

    def settle(self, run_id: str, used: int) -> None:
        """Say how many slots the run really holds; what it gave back goes to who waits longest."""
        before = self._used.get(run_id, 0)
        self._set(run_id, used)
        if used < before:
            self._offer(run_id)

    def forget(self, run_id: str) -> None:
        self._waiting.pop(run_id, None)
        self.settle(run_id, 0)

    def _share(self, run_id: str) -> int:
        """Say how many more this run may take while others wait."""
        others = len(self._waiting.keys() - {run_id})
        if not others:
            return self.cap
        share = max(1, self.cap // (len(self._used.keys() | self._waiting.keys() | {run_id})))
        return share - self._used.get(run_id, 0)

    def _offer(self, freed_by: str) -> None:
        room = self.cap - self._total
        for run_id in list(self._waiting)[: max(0, room)]:
            if run_id != freed_by:
                self._nudge(run_id)

    def _set(self, run_id: str, used: int) -> None:
        self._total += used - self._used.get(run_id, 0)
        if used:
            self._used[run_id] = used
        else:
            self._used.pop(run_id, None)
