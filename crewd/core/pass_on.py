"""Handing a process on: an agent that has done takes the next task of its kind.

An agent's program takes longer to start than many a task. When an agent has handed in, and the
task that is next has the same agent in the same place, the process forgets what was said, is told
who it is from now on, and its host calls it by the next attempt. Anything that goes wrong on the
way only costs the start that was to be saved.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from crewd.core.dispatch import begin, is_preparing, is_stopping, say, start, start_effect
from crewd.core.effects import CloseStdin
from crewd.core.messages import next_message, renew_message
from crewd.core.model import Attempt, Task
from crewd.core.reports import SessionOpened, SessionRenewed
from crewd.core.spec import AGENTS
from crewd.core.state import Promise, RunState
from crewd.core.turn import Turn
from crewd.core.words import AttemptStatus, OutboxKind, Outcome

TASKS_A_PROCESS: Final = 10
"""Then it ends and gives its slot back: other runs get their turn, and nothing leaks for ever."""


def promise(turn: Turn, giver: Attempt) -> bool:
    """Promise the process of an attempt that has handed in to the next task, if it suits."""
    state = turn.state
    heir = state.first_ready()
    if heir is None or not state.may_start or not _has_a_slot_to_give(state, giver):
        return False
    if not _alike(state, state.tasks[giver.task_id], heir):
        return False
    done = state.promised.done.get(giver.task_id, 0) + 1
    if done >= TASKS_A_PROCESS:
        return False
    state.pop_ready()
    state.promised[heir.id] = Promise(giver.task_id, giver.number)
    state.promised.done[heir.id] = done
    say(turn, giver, OutboxKind.RENEW, renew_message())
    start(turn, heir)
    return True


def opened(turn: Turn, giver: Attempt, report: SessionOpened) -> None:
    """Tell a process that begins a new session whose it is from now on."""
    heir = heir_of(turn, giver)
    if heir is not None:
        body = next_message(report.ref, heir.task_id, heir.number)
        say(turn, giver, OutboxKind.NEXT, body)


def renewed(turn: Turn, giver: Attempt, _report: SessionRenewed) -> None:
    heir = heir_of(turn, giver)
    if heir is not None:
        turn.state.promised[heir.task_id].renewed = True
        if heir.prompt_artifact_id:
            begin(turn, heir)


def broken(turn: Turn, heir: Attempt) -> None:
    """Start an attempt in a process of its own: the one it was promised is not to be had."""
    promised = turn.state.promised.pop(heir.task_id, None)
    turn.state.promised.done.pop(heir.task_id, None)
    if promised is not None and turn.state.live_attempt(promised.task_id, promised.attempt):
        turn.do(CloseStdin(task_id=promised.task_id, attempt=promised.attempt))
    if is_preparing(turn.state, heir) or is_stopping(heir):
        return
    begin(turn, heir)


def heir_of(turn: Turn, giver: Attempt) -> Attempt | None:
    """Return the attempt that waits for this one's process."""
    for task_id, promised in turn.state.promised.items():
        if promised.task_id == giver.task_id and promised.attempt == giver.number:
            return turn.state.attempts[task_id]
    return None


def _has_a_slot_to_give(state: RunState, giver: Attempt) -> bool:
    """Say whether it has done well, and works within the run's limit itself.

    Who waits for a person has left its slot to another, and who went on after an answer may be
    one too many.
    """
    given = giver.handed_in
    done = given is not None and given.outcome is Outcome.COMPLETED
    works = giver.status is AttemptStatus.RUNNING and giver.task_id not in state.waiting
    return done and works and state.in_use <= state.run.spec.limits.max_concurrent_workers


def _alike(state: RunState, done: Task, following: Task) -> bool:
    """Say whether both are of the same agent and would be started in the same way."""
    if following.spec.adapter not in AGENTS or done.spec.agent != following.spec.agent:
        return False
    as_done = replace(start_effect(state, done, 0), task_id=following.id)
    return as_done == start_effect(state, following, 0)
