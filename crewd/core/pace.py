"""Keeping agents going: one that falls silent is stopped, one that takes too many turns as well.

Only what an agent says in its protocol counts as a sign of life. While it waits for a person or
for a tool its silence means nothing.
"""

from __future__ import annotations

from typing import Final

from crewd.core.derive import derived_id
from crewd.core.dispatch import listens, send_note
from crewd.core.marks import StallMoved
from crewd.core.model import Actor, Attempt
from crewd.core.stopping import stop_attempt
from crewd.core.turn import Turn
from crewd.core.units import later, seconds
from crewd.core.words import ActorKind, TaskStatus

SILENCE: Final = seconds(600)
STEP: Final = seconds(60)
"""The deadline is moved in steps: not every line is worth a new one."""
GRACE_TURNS: Final = 5
"""Turns an agent may still take after it was told to come to an end."""


def sign_of_life(turn: Turn, attempt: Attempt) -> None:
    if attempt.stall_at is not None and later(turn.now, SILENCE) - attempt.stall_at > STEP:
        _move(turn, attempt)


def silent(turn: Turn, attempt: Attempt) -> None:
    """Stop an agent that has been silent too long, unless it waits for something itself.

    One that has handed in and never ends its turn only lingers: its result counts.
    """
    task = turn.state.tasks[attempt.task_id]
    if task.status is TaskStatus.WAITING or task.current_tool:
        _move(turn, attempt)
    else:
        stop_attempt(turn, attempt, "stalled" if attempt.handed_in is None else "lingering")


def count_turns(turn: Turn, attempt: Attempt) -> None:
    """Tell an agent at its last turn to come to an end, and stop it when it does not."""
    spec = turn.state.run.spec
    agent = spec.agents.get(turn.state.tasks[attempt.task_id].spec.agent)
    if agent is None or agent.max_turns is None or not listens(attempt):
        return
    if attempt.usage.turns >= agent.max_turns + GRACE_TURNS:
        stop_attempt(turn, attempt, "turns")
    elif attempt.usage.turns == agent.max_turns:
        _wrap_up(turn, attempt, agent.max_turns)


def _wrap_up(turn: Turn, attempt: Attempt, limit: int) -> None:
    text = f"You have taken {limit} turns, which is your limit. Finish now and hand in."
    steer_id = derived_id("steer", attempt.key, "wrap_up")
    policy = Actor(ActorKind.POLICY, f"max_turns={limit}")
    send_note(turn, attempt, steer_id, text, actor=policy)


def _move(turn: Turn, attempt: Attempt) -> None:
    mark = StallMoved(
        task_id=attempt.task_id, attempt=attempt.number, stall_at=later(turn.now, SILENCE)
    )
    turn.note(mark)
