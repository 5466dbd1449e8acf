"""Results that are kept under a name of their own.

A task may name its output; then its result is an artifact as well. The run does not end before the
bytes are durable, so who hears that it ended finds them, and a daemon that dies in between asks
for them again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from crewd.core.dispatch import begin
from crewd.core.effects import KeepText
from crewd.core.events import ArtifactRecorded, WarningRaised
from crewd.core.model import NO_RESULT, Artifact
from crewd.core.stimuli import TextKept, TextWaits
from crewd.core.turn import Turn
from crewd.core.words import ArtifactKind, AttemptStatus

PLAIN_TEXT: Final = "text/plain; charset=utf-8"


def keep_results(turn: Turn) -> None:
    """Have every named result kept that was not asked for yet."""
    state = turn.state
    while state.keeping.unasked:
        task = state.tasks[state.keeping.unasked.popleft()]
        if not task.has_unkept_result:
            continue
        result = task.result or NO_RESULT
        state.keeping.asked.add(task.id)
        turn.do(
            KeepText(
                task_id=task.id,
                attempt=task.attempt,
                name=task.spec.output.name,
                kind=ArtifactKind.RESULT,
                media_type=PLAIN_TEXT,
                text=result.text,
                truncated=result.truncated,
            )
        )


def kept(turn: Turn, stimulus: TextKept) -> None:
    """Record what is durable now, once."""
    state, artifact = turn.state, stimulus.artifact
    attempt, task = state.attempts.get(artifact.task_id), state.tasks[artifact.task_id]
    known = {attempt.prompt_artifact_id if attempt else "", (task.result or NO_RESULT).artifact_id}
    if artifact.id not in known:
        turn.tell(ArtifactRecorded(replace(artifact, create_time=turn.now)))
    if artifact.kind is ArtifactKind.PROMPT:
        _may_begin(turn, artifact)


def _may_begin(turn: Turn, prompt: Artifact) -> None:
    """Start the agent whose prompt this is, if it is still wanted and by the host that is there."""
    attempt = turn.state.live_attempt(prompt.task_id, prompt.attempt)
    if attempt is None or attempt.status is not AttemptStatus.STARTING or attempt.pid:
        return
    if attempt.epoch == turn.state.epoch:
        begin(turn, attempt)


def waits(turn: Turn, stimulus: TextWaits) -> None:
    """Tell a person why something is not kept yet."""
    turn.tell(
        WarningRaised(
            code="artifact_waits",
            message=stimulus.message,
            task_id=stimulus.task_id,
            attempt=stimulus.attempt,
        )
    )
