"""The event encoder: one `crewd.v1.Event`, encoded once, for the log and every watcher.

It runs on the event loop for every event, so what is the same for many events is prepared: the
kind, which ids an event has, and the bytes of its actor, which are appended to the rest (parts of
a message may stand in any order).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, NamedTuple, get_args

from crewd.core import events as e
from crewd.core.model import Actor, Run
from crewd.core.state import RunState
from crewd.core.words import ActorKind
from crewd.rpc import convert, enums
from crewd.rpc.payloads import FILLS, LONG, Fill
from crewd.rpc.wire import KIB
from crewd.v1 import event_pb2

EVENT_BYTES: Final = 64 * KIB
"""The most an encoded event has; what is longer is cut."""
_LESS: Final = 4
_LEAST: Final = 64


class _Kind(NamedTuple):
    name: str
    fill: Fill
    ends_run: bool
    has_task: bool
    has_attempt: bool


def encode_event(recorded: e.Recorded, state: RunState, sequence: int) -> tuple[str, bytes]:
    """Return the event's kind and the event as one `crewd.v1.Event`.

    `state` is the run as the decision left it that told the event.
    """
    kind = _KINDS[type(recorded.event)]
    texts = LONG
    data = _encode(recorded, kind, (state.run, sequence), texts)
    while len(data) > EVENT_BYTES and texts > _LEAST:
        texts //= _LESS
        data = _encode(recorded, kind, (state.run, sequence), texts)
    return kind.name, data


def _encode(recorded: e.Recorded, kind: _Kind, place: tuple[Run, int], texts: int) -> bytes:
    event: Any = recorded.event
    run, sequence = place
    task_id = event.task_id if kind.has_task else ""
    attempt = event.attempt if kind.has_attempt else 0
    message = event_pb2.Event(
        sequence=sequence,
        run_sequence=recorded.run_sequence,
        run_id=run.id,
        task_id=task_id,
        attempt=attempt,
        kind=kind.name,
    )
    time = message.time
    time.seconds, micros = divmod(recorded.time, 1_000_000)
    time.nanos = micros * 1000
    if recorded.run_status is not None:
        message.run_status = enums.RUN_STATUS[recorded.run_status]
    if recorded.task_status is not None:
        message.task_status = enums.TASK_STATUS[recorded.task_status]
    kind.fill(message, event, texts)
    if kind.ends_run:
        message.run_finished.usage.CopyFrom(convert.usage(run.usage))
        message.run_finished.counts.CopyFrom(convert.task_counts(run))
    actor = recorded.actor
    if actor.kind is ActorKind.WORKER:
        actor = Actor(ActorKind.WORKER, f"{run.id}/{task_id}/{attempt}", actor.client)
    return message.SerializeToString() + _actor(actor)


@lru_cache(maxsize=256)
def _actor(actor: Actor) -> bytes:
    """Return an event that has only this actor, encoded."""
    return event_pb2.Event(actor=convert.actor(actor)).SerializeToString()


def _kind(event: type[object]) -> _Kind:
    return _Kind(
        name=re.sub(r"(?<!^)(?=[A-Z])", "_", event.__name__).lower(),
        fill=FILLS[event],
        ends_run=event is e.RunFinished,
        has_task=hasattr(event, "task_id"),
        has_attempt=hasattr(event, "attempt"),
    )


_KINDS: Final = {event: _kind(event) for event in get_args(e.Event)}
