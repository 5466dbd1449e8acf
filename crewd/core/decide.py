"""Decide what follows from one stimulus: facts to record, then effects to perform.

Pure: the same state, stimulus and instant give the same decision. A refused command raises
`CrewdError` before it has changed anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from crewd.core import asks, attempts, control, dispatch, heard, keeping, reopen
from crewd.core import stimuli as s
from crewd.core.advance import advance
from crewd.core.create import create
from crewd.core.due import due
from crewd.core.effects import Decision
from crewd.core.model import DAEMON, Actor
from crewd.core.reconcile import host_gone, host_ready
from crewd.core.state import RunState
from crewd.core.turn import Turn
from crewd.core.units import Instant
from crewd.core.words import ActorKind


def decide(state: RunState, stimulus: s.Stimulus, now: Instant) -> Decision:
    """Apply what follows to `state` and return it.

    Raises `CrewdError` when the stimulus is a command that the run's present state does not
    allow; the state is then as it was.
    """
    turn = Turn(state, now, _author(stimulus))
    _DECIDERS[type(stimulus)](turn, stimulus)
    advance(turn)
    return turn.decision()


def _author(stimulus: s.Stimulus) -> Actor:
    if isinstance(stimulus, s.Command):
        return stimulus.actor
    if isinstance(stimulus, s.WorkerReported):
        return Actor(ActorKind.WORKER, stimulus.task_id)
    return DAEMON


def _go_on(_turn: Turn, _stimulus: s.GoOn) -> None:
    """Nothing of its own: `advance` takes the next slice."""


_DECIDERS: Mapping[type, Callable[[Turn, Any], None]] = {
    s.Create: create,
    s.Cancel: control.cancel,
    s.CancelTasks: control.cancel_tasks,
    s.Steer: control.steer,
    s.Delete: control.delete,
    s.Resume: reopen.resume,
    s.Retry: reopen.retry,
    s.Resolve: reopen.resolve,
    s.AnswerAsk: asks.answer,
    s.WorkerStarted: attempts.started,
    s.WorkerRefused: attempts.refused,
    s.WorkerReported: heard.reported,
    s.WorkerExited: attempts.exited,
    s.WorkerCalled: heard.called,
    s.TextKept: keeping.kept,
    s.TextWaits: keeping.waits,
    s.AskTaken: asks.taken,
    s.OutboxAccepted: dispatch.accepted,
    s.OutboxRoom: dispatch.room,
    s.HostReady: host_ready,
    s.HostGone: host_gone,
    s.Due: due,
    s.Capacity: dispatch.capacity,
    s.GoOn: _go_on,
    s.Break: control.break_off,
}
