"""One decision in the making.

Later parts of a decision depend on what earlier parts did (a failed attempt fails its task, which
stops the run, which skips others), so each fact is applied as it is told. Nothing else changes
the state, and the same facts applied to the same rows give the same state again.
"""

from __future__ import annotations

from crewd.core.apply import apply
from crewd.core.effects import Decision, Effect
from crewd.core.events import Event, Recorded, RunCreated
from crewd.core.marks import Mark
from crewd.core.model import Actor
from crewd.core.state import RunState
from crewd.core.units import Instant


class Turn:
    """Collects what one stimulus leads to."""

    def __init__(self, state: RunState, now: Instant, actor: Actor) -> None:
        self.state = state
        self.now = now
        self.actor = actor
        self._events: list[Recorded] = []
        self._effects: list[Effect] = []

    def tell(self, event: Event, *, actor: Actor | None = None) -> None:
        """Record a fact of the log."""
        state = self.state
        task = state.tasks.get(getattr(event, "task_id", ""))
        run_before = None if isinstance(event, RunCreated) else state.run.status
        task_before = task.status if task is not None else None
        apply(state, event, self.now)
        self._events.append(
            Recorded(
                event=event,
                time=self.now,
                actor=actor or self.actor,
                run_sequence=state.run.last_run_sequence,
                run_status=state.run.status if state.run.status is not run_before else None,
                task_status=(
                    task.status if task is not None and task.status is not task_before else None
                ),
            )
        )

    def note(self, mark: Mark) -> None:
        """Change rows without a fact of the log."""
        apply(self.state, mark, self.now)

    def do(self, effect: Effect) -> None:
        """Have something done after the commit."""
        self._effects.append(effect)

    def decision(self) -> Decision:
        return Decision(tuple(self._events), tuple(self._effects))
