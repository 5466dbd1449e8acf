"""One open run: the only writer of its state.

Everything that waits is decided in one drain, stored in one append, published by the log, and only
then answered and carried out. When an append fails or a decision breaks, the state in memory is
thrown away and the run goes on from its rows, as after a start of the daemon.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import structlog

from crewd.core.decide import decide
from crewd.core.effects import Continue, Effect
from crewd.core.errors import CrewdError, Reason
from crewd.core.events import CHATTER, Recorded
from crewd.core.state import RunState
from crewd.core.stimuli import Break, Capacity, GoOn, Stimulus
from crewd.runtime.clock import Clock
from crewd.runtime.ids import new_id
from crewd.runtime.slots import Slots
from crewd.runtime.timers import Timers
from crewd.store.entries import Entry, Request
from crewd.store.log import Log

log = structlog.get_logger()

Render = Callable[[RunState], bytes]
"""Builds a command's response from the state after its decision."""

Source = tuple[str, str, int]
SHORTEST_PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 60.0
"""Seconds between the loads of a run that breaks again and again."""
STARTS_A_DRAIN: Final = 64
"""Workers one drain starts at most, so that a wide run does not hold up the others."""


class Encode(Protocol):
    """Turns a fact into the bytes of one `crewd.v1.Event`."""

    def __call__(self, recorded: Recorded, state: RunState, sequence: int, /) -> tuple[str, bytes]:
        """Return the event's kind and its bytes."""
        ...


@dataclass(frozen=True, slots=True)
class RequestKey:
    """Names a write so that it is carried out once; `digest` is of everything but the id."""

    id: str
    method: str
    digest: bytes


@dataclass(slots=True)
class Item:
    """A stimulus in the inbox, and who waits for it to be durable."""

    stimulus: Stimulus
    done: asyncio.Future[bytes] | None = None
    request: RequestKey | None = None
    render: Render | None = None


@dataclass(slots=True)
class _Drain:
    """What one drain leads to, up to its append."""

    entries: list[Entry] = field(default_factory=list[Entry])
    effects: list[Effect] = field(default_factory=list[Effect])
    requests: list[Request] = field(default_factory=list[Request])
    replies: list[tuple[Item, bytes]] = field(default_factory=list[tuple[Item, bytes]])
    refusals: list[tuple[Item, CrewdError]] = field(default_factory=list[tuple[Item, CrewdError]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What every actor shares."""

    log: Log
    clock: Clock
    slots: Slots
    timers: Timers
    encode: Encode
    perform: Callable[[str, RunState, Sequence[Effect]], None]
    reload: Callable[[Actor], None]
    """Have the run's rows loaded again and handed to `restart`."""
    settled: Callable[[Actor], None]
    """The run waits for a person only, and nothing waits in its inbox: it may be dropped."""
    spawn: Callable[[Actor], object]
    """Run `drain` as a supervised task."""


class Actor:
    """Owns one run's state. `tell` and `ask` put stimuli in its inbox."""

    def __init__(self, state: RunState, around: Surroundings) -> None:
        self.run_id = state.run.id
        self._state = state
        self._around = around
        self._inbox: list[Item] = []
        self._busy = False
        self._reloading = False
        self._broken_by: Source | None = None
        self._failures = 0

    @property
    def pause(self) -> float:
        """How many seconds to wait before the rows are loaded again: longer each time in a row."""
        return min(LONGEST_PAUSE, SHORTEST_PAUSE * 2**self._failures) if self._failures > 1 else 0.0

    @property
    def state(self) -> RunState:
        """Ahead of the log by up to one commit: for the runtime's own use only."""
        return self._state

    @property
    def is_idle(self) -> bool:
        return not self._busy and not self._inbox

    def tell(self, stimulus: Stimulus) -> None:
        self._put(Item(stimulus))

    async def ask(
        self,
        stimulus: Stimulus,
        *,
        request: RequestKey | None = None,
        render: Render | None = None,
    ) -> bytes:
        """Return once what follows from the stimulus is durable. Raises `CrewdError` if refused."""
        done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._put(Item(stimulus, done, request, render))
        return await done

    def restart(self, state: RunState, first: Sequence[Stimulus]) -> None:
        """Go on from rows that were loaded again; `first` comes before all that waits."""
        self._state = state
        self._reloading = False
        self._inbox[:0] = [Item(stimulus) for stimulus in first]
        self._wake()

    async def drain(self) -> None:
        """Work until nothing waits."""
        while self._inbox and not self._reloading:
            items, self._inbox = self._inbox, []
            current = items[0]
            try:
                work = _Drain()
                for current in items:
                    self._decide(current, work)
                self._dispatch(work)
                await self._append(work)
            except Exception as error:  # noqa: BLE001 - a broken run must not take others with it
                self._break(items, current, error)
                break
            if self._broken_by is not None and self._broken_by in map(_source, items):
                self._broken_by, self._failures = None, 0
            self._finish(work)
        self._busy = False
        self.let_go()

    def let_go(self) -> None:
        """Say so if only a person can make this run go on, and nothing waits."""
        if self.is_idle and not self._reloading and self._state.is_settled:
            self._around.settled(self)

    def _put(self, item: Item) -> None:
        self._inbox.append(item)
        self._wake()

    def _wake(self) -> None:
        if not self._busy and not self._reloading and self._inbox:
            self._busy = True
            self._around.spawn(self)

    def _decide(self, item: Item, work: _Drain) -> None:
        now = self._around.clock.now()
        try:
            decision = decide(self._state, item.stimulus, now)
        except CrewdError as refusal:
            if item.done is None:
                raise
            work.refusals.append((item, refusal))
            return
        self._encode(decision.events, work)
        work.effects.extend(decision.effects)
        if item.done is not None:
            if decision.events:
                self._state.stamp(work.entries[-1].sequence)
            response = item.render(self._state) if item.render else b""
            work.replies.append((item, response))
            if item.request is not None:
                key = item.request
                work.requests.append(
                    Request(
                        id=key.id,
                        run_id=self.run_id,
                        method=key.method,
                        digest=key.digest,
                        response=response,
                        time=now,
                    )
                )

    def _dispatch(self, work: _Drain) -> None:
        """Start what the pool grants, in the same append as what freed the slots."""
        state, slots = self._state, self._around.slots
        slots.settle(self.run_id, state.in_use)
        for _ in range(STARTS_A_DRAIN):
            wanted = state.wanted_slots()
            granted = slots.take(self.run_id, wanted) if wanted else 0
            if not granted:
                break
            decision = decide(state, Capacity(granted), self._around.clock.now())
            self._encode(decision.events, work)
            work.effects.extend(decision.effects)
            slots.settle(self.run_id, state.in_use)
        else:
            work.effects.append(Continue())

    def _encode(self, events: Sequence[Recorded], work: _Drain) -> None:
        if not events:
            return
        first = self._around.log.take_sequences(len(events))
        for sequence, recorded in enumerate(events, first):
            kind, data = self._around.encode(recorded, self._state, sequence)
            work.entries.append(
                Entry(
                    sequence=sequence,
                    run_sequence=recorded.run_sequence,
                    kind=kind,
                    chatter=isinstance(recorded.event, CHATTER),
                    data=data,
                )
            )

    async def _append(self, work: _Drain) -> None:
        state = self._state
        if not work.entries and not work.requests and not state.changed.run:
            return
        sequence = work.entries[-1].sequence if work.entries else state.run.last_sequence
        changes = state.take_changes(sequence)
        await self._around.log.append(self.run_id, work.entries, changes, work.requests)

    def _finish(self, work: _Drain) -> None:
        self._around.timers.set(self.run_id, self._state.next_due())
        for item, response in work.replies:
            _resolve(item, response)
        for item, refusal in work.refusals:
            _refuse(item, refusal)
        if any(isinstance(effect, Continue) for effect in work.effects):
            self._inbox.append(Item(GoOn()))
        self._around.perform(self.run_id, self._state, work.effects)

    def _break(self, items: Sequence[Item], current: Item, error: Exception) -> None:
        """Throw the state away; a second failure by what comes from the same place ends the run."""
        incident = new_id("incident")
        log.error(
            "run_broken",
            run_id=self.run_id,
            stimulus=type(current.stimulus).__name__,
            incident_id=incident,
            exc_info=error,
        )
        answer = CrewdError(
            Reason.INTERNAL,
            f"an internal error stopped this; the daemon's log has incident {incident}",
            incident_id=incident,
        )
        for item in items:
            _refuse(item, answer)
        source = _source(current)
        if self._broken_by == source and not isinstance(current.stimulus, Break):
            self._inbox.insert(0, Item(Break(incident)))
        elif self._broken_by != source:
            self._failures = 0
        self._broken_by = source
        self._failures += 1
        self._reloading = True
        self._around.slots.forget(self.run_id)
        self._around.reload(self)


def _source(item: Item) -> Source:
    """Return where a stimulus comes from: read again, what a worker said has other ids in it."""
    stimulus = item.stimulus
    return (
        type(stimulus).__name__,
        getattr(stimulus, "task_id", ""),
        getattr(stimulus, "attempt", 0),
    )


def _resolve(item: Item, response: bytes) -> None:
    if item.done is not None and not item.done.done():
        item.done.set_result(response)


def _refuse(item: Item, refusal: CrewdError) -> None:
    if item.done is not None and not item.done.done():
        item.done.set_exception(refusal)
