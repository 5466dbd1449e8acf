"""Marks that a process and all it ever starts carry, whatever they do with their environment.

A mark is the soft limit on real-time CPU time, which means nothing to a process that is not
scheduled as real-time, and which fork, setsid and exec all pass on. Bit 62 says that it is a mark,
bit 61 that the job keeps its children, then come 29 bits of the store and 32 of the job.
"""

from __future__ import annotations

import resource
from binascii import crc32

_LIMIT = resource.RLIMIT_RTTIME
_IS_MARK = 1 << 62
_KEEPS = 1 << 61
_JOB_BITS = 32
_STORE_MASK = (1 << 29) - 1
_JOB_MASK = (1 << _JOB_BITS) - 1


class Marks:
    """The marks of one state directory. Where the hard limit is not infinite there are none."""

    def __init__(self, store_marker: str) -> None:
        self._inherited = resource.getrlimit(_LIMIT)
        self.usable = self._inherited[1] == resource.RLIM_INFINITY
        self._store = _IS_MARK | (crc32(store_marker.encode()) & _STORE_MASK) << _JOB_BITS

    def of_job(self, job: str, *, keep_children: bool) -> int:
        return self._store | crc32(job.encode()) & _JOB_MASK | (_KEEPS if keep_children else 0)

    def put_on(self, mark: int) -> None:
        """Mark this process, so that the next child is born with the mark."""
        if self.usable:
            resource.setrlimit(_LIMIT, (mark, resource.RLIM_INFINITY))

    def take_off(self) -> None:
        if self.usable:
            resource.setrlimit(_LIMIT, self._inherited)

    def put_on_process(self, pid: int, mark: int) -> None:
        """Give a living process another mark, or raise OSError where that is not allowed."""
        if self.usable:
            resource.prlimit(pid, _LIMIT, (mark, resource.RLIM_INFINITY))

    def read(self, pid: int) -> int | None:
        """Return the mark of this process if it is one of ours."""
        try:
            mark = resource.prlimit(pid, _LIMIT)[0]
        except (ProcessLookupError, PermissionError):
            return None
        return mark if mark > 0 and mark & ~(_JOB_MASK | _KEEPS) == self._store else None


def keeps_children(mark: int) -> bool:
    return bool(mark & _KEEPS)
