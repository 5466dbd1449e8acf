"""Starts wait in a queue, so that exits, output and stops are seen between them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

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
        job = Job(
            order.job,
            started.pid,
            stdin=stdin,
            stdout=Stream(self._paths, order.job, name=STDOUT, descriptor=started.stdout),
            stderr=Stream(self._paths, order.job, name=STDERR, descriptor=started.stderr),
        )
        job.mark = mark
        job.keep_children = order.keep_children
        return job


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

    def _start(self, order: Order) -> Job:
        if order.keep_children:
            self._registry.about_to_start(order.job)
        try:
            job = self._workshop.make(order)
        except RefusedError:
            if order.keep_children:
                self._registry.not_started(order.job)
            raise
        self._registry.started(job)
        self._outputs.watch(job)
        return job

    def _answer(self, key: str, result: int | RefusedError) -> None:
        for answer in self._answers.pop(key, ()):
            answer(result)
        for action in self._after.pop(key, ()):
            action()
