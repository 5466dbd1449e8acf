"""A process of the host and its three pipes, as plain state."""

from __future__ import annotations

from crewd.host.messages import Message
from crewd.host.protocol import HostPaths
from crewd.host.spool import Spool
from crewd.host.stdin import StdinQueue


class Stream:
    """The reading end of a worker's stdout or stderr, and where its bytes go."""

    __slots__ = ("descriptor", "held", "name", "paused", "spool")

    def __init__(self, paths: HostPaths, job: str, *, name: str, descriptor: int | None) -> None:
        self.name = name
        self.descriptor = descriptor
        self.spool = Spool(paths, job, name)
        self.held = b""  # Read, but the disk had no room for it.
        self.paused = False


class Job:
    """Live until its exit is reported; `exit` is that report.

    A job can have its process from another one, `passed_from`. The process then still carries the
    key it was born with in its environment, and what it started in the instant in which its mark
    was changed may carry the mark before.
    """

    __slots__ = (
        "birth_key",
        "exit",
        "exit_code",
        "former_mark",
        "keep_children",
        "key",
        "mark",
        "passed_from",
        "pid",
        "signal",
        "stderr",
        "stdin",
        "stdout",
        "stop_asked",
        "worker_ended",
    )

    def __init__(
        self,
        key: str,
        pid: int,
        *,
        stdin: StdinQueue | None,
        stdout: Stream,
        stderr: Stream,
    ) -> None:
        self.key = key
        self.pid = pid
        self.birth_key = key
        self.passed_from: str | None = None
        self.mark = 0
        self.former_mark = 0
        self.keep_children = False
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.stop_asked = False
        self.worker_ended = False
        self.exit_code: int | None = None
        self.signal: int | None = None
        self.exit: Message | None = None

    @property
    def marks(self) -> tuple[int, int]:
        return self.mark, self.former_mark

    @property
    def streams(self) -> tuple[Stream, Stream]:
        return self.stdout, self.stderr

    @property
    def unread(self) -> int:
        out, err = self.stdout.spool, self.stderr.spool
        return out.written - out.consumed + err.written - err.consumed

    def worker_exited(self, code: int) -> None:
        """Note how the worker ended; a negative code names a signal."""
        self.worker_ended = True
        if code < 0:
            self.signal = -code
        else:
            self.exit_code = code
