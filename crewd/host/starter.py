"""Starts wait in a queue, so that exits, output and stops are seen between them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from crewd.host.job import Job, Stream
from crewd.host.launch import Launcher, Order
from crewd.host.loop import Loop
from crewd.host.messages import RefusedError
from crewd.host.outputs import Outputs
from crewd.host.owners import Owners
from crewd.host.protocol import ATTEMPT_VARIABLE, STDERR, STDOUT, HostPaths
from crewd.host.registry import Registry
from crewd.host.stdin import StdinQueue

_STARTS_A_TURN = 4  # More make others wait; fewer make exits and commits arrive one by one.

Answer = Callable[[int | RefusedError], None]


class Handover(NamedTuple):
    """The job that is to have a process that runs already."""

    job: str
    keep_children: bool


class Workshop:
    """Makes a job of an order: the process with its mark, its streams, its stdin."""

    def __init__(
        self, loop: Loop, paths: HostPaths, owners: Owners, on_room: Callable[[str], None]
    ) -> None:
        self._loop = loop
        self._paths = paths
        self._owners = owners
        self._on_room = on_room
        self._launcher = Launcher()

    def make(self, order: Order) -> Job:
        """Start the process or raise RefusedError."""
        mark = self._owners.new_mark(order.job, keep_children=order.keep_children)
        order.env[ATTEMPT_VARIABLE] = self._owners.attempt(order.job)
        self._owners.marks.put_on(mark)
        try:
            started = self._launcher.start(order)
        finally:
            self._owners.marks.take_off()
        stdin = None
        if started.stdin is not None:
            stdin = StdinQueue(self._loop, started.stdin, partial(self._on_room, order.job))
        job = self._job(order.job, started.pid, stdin, (started.stdout, started.stderr))
        job.mark = mark
        job.keep_children = order.keep_children
        return job

    def remake(self, source: Job, handover: Handover) -> Job:
        """Make another job of the process of one, without its streams, or raise OSError."""
        key, keep_children = handover.job, handover.keep_children
        mark = self._owners.new_mark(key, keep_children=keep_children)
        self._owners.marks.put_on_process(source.pid, mark)
        stdin = source.stdin
        if stdin is not None:
            stdin = stdin.hand_over(partial(self._on_room, key))
        job = self._job(key, source.pid, stdin, (None, None))
        job.birth_key = source.birth_key
        job.passed_from = source.key
        job.mark = mark
        job.former_mark = source.mark
        job.keep_children = keep_children
        return job

    def _job(
        self, key: str, pid: int, stdin: StdinQueue | None, ends: tuple[int | None, int | None]
    ) -> Job:
        out, err = ends
        return Job(
            key,
            pid,
            stdin=stdin,
            stdout=Stream(self._paths, key, name=STDOUT, descriptor=out),
            stderr=Stream(self._paths, key, name=STDERR, descriptor=err),
        )


class Starter:
    def __init__(self, workshop: Workshop, registry: Registry, outputs: Outputs) -> None:
        self._workshop = workshop
        self._registry = registry
        self._outputs = outputs
        self._queue: dict[str, Order] = {}
        self._answers: dict[str, list[Answer]] = {}
        self._after: dict[str, list[Callable[[], None]]] = {}

    @property
    def waiting(self) -> bool:
        return bool(self._queue)

    def add(self, order: Order, answer: Answer) -> None:
        """Queue a start; a second one of the same job is answered with the first."""
        self._queue.setdefault(order.job, order)
        self._answers.setdefault(order.job, []).append(answer)

    def holds(self, key: str) -> bool:
        return key in self._queue

    def afterwards(self, key: str, action: Callable[[], None]) -> None:
        """Do this when the start that waits has been tried, or has been taken out again."""
        self._after.setdefault(key, []).append(action)

    def remove(self, key: str, reason: RefusedError) -> bool:
        """Take a start out of the queue again; tell whether it was still there."""
        if self._queue.pop(key, None) is None:
            return False
        self._answer(key, reason)
        return True

    def remove_all(self, reason: RefusedError) -> None:
        for key in list(self._queue):
            self.remove(key, reason)

    def start_some(self) -> None:
        """Start a few of those that wait, and only one while a worker is talking."""
        count = 1 if self._outputs.talking else _STARTS_A_TURN
        for key in list(self._queue)[:count]:
            order = self._queue.pop(key)
            try:
                job = self._start(order)
            except RefusedError as refused:
                self._answer(key, refused)
            else:
                self._answer(key, job.pid)

    def take_over(self, source: Job, handover: Handover) -> Job:
        """Make another job of the process of one, all but registered, or raise OSError."""
        job = self._made(handover, partial(self._workshop.remake, source, handover))
        self._outputs.hand_over(source, job)
        return job

    def _start(self, order: Order) -> Job:
        job = self._made(order, partial(self._workshop.make, order))
        self._registry.started(job)
        self._outputs.watch(job)
        return job

    def _made(self, order: Order | Handover, make: Callable[[], Job]) -> Job:
        if order.keep_children:
            self._registry.about_to_start(order.job)
        try:
            return make()
        except (RefusedError, OSError):
            if order.keep_children:
                self._registry.not_started(order.job)
            raise

    def _answer(self, key: str, result: int | RefusedError) -> None:
        for answer in self._answers.pop(key, ()):
            answer(result)
        for action in self._after.pop(key, ()):
            action()
