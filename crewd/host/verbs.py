"""What a controller can ask for. A verb returns its reply, or None for later or never."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from crewd.host.connection import Connection
from crewd.host.endings import Endings
from crewd.host.job import Job
from crewd.host.launch import Order
from crewd.host.messages import Message, RefusedError, flag, text, text_map, texts, whole
from crewd.host.outputs import Outputs
from crewd.host.protocol import STDERR, STDOUT, valid_job_key
from crewd.host.registry import Registry
from crewd.host.starter import Starter

STOP_GRACE_SECONDS = 5.0
_LONGEST_GRACE_SECONDS = 86400.0

Verb = Callable[[Connection, Message], Message | None]


class Verbs:
    """Everything but hello, for one epoch."""

    def __init__(
        self,
        epoch: str,
        registry: Registry,
        outputs: Outputs,
        *,
        starter: Starter,
        endings: Endings,
    ) -> None:
        self._epoch = epoch
        self._registry = registry
        self._outputs = outputs
        self._starter = starter
        self._endings = endings
        self._table: dict[str, Verb] = {
            "close": self._close,
            "forget": self._forget,
            "ping": lambda _connection, _message: {},
            "read": self._read,
            "shutdown": self._shutdown,
            "start": self._start,
            "stop": self._stop,
            "write": self._write,
        }
        self.on_never_started: Callable[[str], None] = lambda _key: None
        self.take: Callable[[Connection, Message], None] = lambda _connection, _message: None
        self.shutting_down = False

    def add(self, name: str, verb: Verb) -> None:
        """Know one verb more."""
        self._table[name] = verb

    def perform(self, connection: Connection, message: Message) -> Message | None:
        """Do what the message asks, or raise RefusedError."""
        name = text(message, "verb")
        verb = self._table.get(name)
        if verb is None:
            raise RefusedError("unknown_verb", f"this host has no verb {name}")
        return verb(connection, message)

    def shut_down(self) -> None:
        """Start nothing more and stop what runs."""
        self.shutting_down = True
        self._starter.remove_all(_shutting_down())
        for job in list(self._registry.live.values()):
            self._endings.stop(job, STOP_GRACE_SECONDS)

    def _start(self, connection: Connection, message: Message) -> Message | None:
        key = text(message, "job")
        order = _order(message, key)
        job = self._registry.find(key)
        if job is not None:
            return {"pid": job.pid, "ended": job.exit is not None}
        if key in self._registry.exits:
            return {"pid": 0, "ended": True}
        if text(message, "epoch") != self._epoch:
            raise RefusedError("epoch", f"this is epoch {self._epoch}", epoch=self._epoch)
        if key in self._registry.lost:
            raise RefusedError(
                "lost", "an earlier host started this job, and how it ended is not known"
            )
        if self.shutting_down:
            raise _shutting_down()
        self._starter.add(order, partial(_answer_start, connection, message.get("id")))
        return None

    def _write(self, connection: Connection, message: Message) -> Message | None:
        if self._waits_for_start(connection, message):
            return None
        job = self._live(message)
        if job.stdin is None:
            raise RefusedError("closed", "the job was started without stdin", stdin_seq=0)
        job.stdin.write(whole(message, "seq"), text(message, "data"))
        return {"stdin_seq": job.stdin.sequence}

    def _close(self, connection: Connection, message: Message) -> Message | None:
        if self._waits_for_start(connection, message):
            return None
        job = self._live(message)
        if job.stdin is not None:
            job.stdin.close_when_written()
        return {}

    def _stop(self, _connection: Connection, message: Message) -> Message:
        key = text(message, "job")
        grace = min(whole(message, "grace_ms") / 1000, _LONGEST_GRACE_SECONDS)
        if key in self._registry.live:
            self._endings.stop(self._registry.live[key], grace)
        elif self._starter.remove(key, RefusedError("stopped", "stopped before it was started")):
            self.on_never_started(key)
        elif key not in self._registry.exits:
            raise _unknown(key)
        return {}

    def _read(self, _connection: Connection, message: Message) -> None:
        job = self._registry.find(text(message, "job"))
        if job is not None:
            self._outputs.consumed(
                job, stdout=whole(message, STDOUT), stderr=whole(message, STDERR)
            )

    def _forget(self, _connection: Connection, message: Message) -> Message:
        for key in texts(message, "jobs"):
            self._registry.forget(key)
        return {}

    def _shutdown(self, _connection: Connection, message: Message) -> Message:
        live = len(self._registry.live)
        if (live or self._starter.waiting) and not flag(message, "stop_jobs"):
            raise RefusedError("busy", f"{live} jobs are live", live=live)
        self.shut_down()
        return {}

    def _waits_for_start(self, connection: Connection, message: Message) -> bool:
        key = text(message, "job")
        if not self._starter.holds(key):
            return False
        self._starter.afterwards(key, partial(self.take, connection, message))
        return True

    def _live(self, message: Message) -> Job:
        key = text(message, "job")
        job = self._registry.live.get(key)
        if job is not None:
            return job
        if key in self._registry.exits:
            raise RefusedError("closed", f"{key} has ended")
        raise _unknown(key)


def _order(message: Message, key: str) -> Order:
    argv = texts(message, "argv")
    if not valid_job_key(key):
        raise RefusedError("bad_request", "job must be run/task/attempt")
    if not argv or not argv[0].startswith("/"):
        raise RefusedError("bad_request", "argv must begin with an absolute path")
    cwd = text(message, "cwd")
    if not cwd.startswith("/"):
        raise RefusedError("bad_request", "cwd must be an absolute path")
    return Order(
        job=key,
        argv=argv,
        cwd=cwd,
        env=text_map(message, "env"),
        stdin=flag(message, "stdin"),
        keep_children=flag(message, "keep_children"),
    )


def _answer_start(connection: Connection, request: object, result: int | RefusedError) -> None:
    if isinstance(result, RefusedError):
        connection.send({"id": request, "ok": False, "error": result.answer})
    else:
        connection.send({"id": request, "ok": True, "pid": result})


def _shutting_down() -> RefusedError:
    return RefusedError("shutting_down", "this host is ending")


def _unknown(key: str) -> RefusedError:
    return RefusedError("unknown", f"no job {key}")
