"""What the host runs against what the rows say: after a restart of either, and after a silence.

One path for all of them. What was intended and never reached the host is sent again; what nobody
can have started elsewhere is started; what another host ran and nobody saw end is lost.
"""

from __future__ import annotations

from crewd.core.attempts import lose, started
from crewd.core.dispatch import WANTS_STDIN, accepted, begin, resend
from crewd.core.effects import CloseStdin
from crewd.core.events import RunRecovered
from crewd.core.model import Attempt
from crewd.core.stimuli import HostGone, HostReady, LiveJob, OutboxAccepted, WorkerStarted
from crewd.core.stopping import GRACE, NO_GRACE, stop_effect
from crewd.core.turn import Turn
from crewd.core.words import AttemptStatus


def host_gone(turn: Turn, _stimulus: HostGone) -> None:
    turn.state.epoch = ""


def host_ready(turn: Turn, stimulus: HostReady) -> None:
    state = turn.state
    state.epoch, state.host = stimulus.epoch, stimulus.host
    state.artifacts = stimulus.artifacts
    state.promised.clear()
    adopted: list[str] = []
    lost: list[str] = []
    for task_id in sorted(state.live, key=lambda t: state.tasks[t].position):
        attempt = state.attempts[task_id]
        key = f"{task_id}/{attempt.number}"
        job = stimulus.live.get(key)
        if job is not None:
            _adopt(turn, attempt, job)
            adopted.append(key)
        elif key in stimulus.exiting:
            continue
        elif attempt.epoch == stimulus.epoch and not attempt.pid:
            _start_again(turn, attempt)
        else:
            lose(turn, attempt)
            lost.append(key)
    if lost or (adopted and stimulus.recovery):
        turn.tell(RunRecovered(adopted=tuple(adopted), lost=tuple(lost)))


def _adopt(turn: Turn, attempt: Attempt, job: LiveJob) -> None:
    started(turn, WorkerStarted(task_id=attempt.task_id, attempt=attempt.number, pid=job.pid))
    if job.stdin_seq:
        accepted(
            turn,
            OutboxAccepted(task_id=attempt.task_id, attempt=attempt.number, seq=job.stdin_seq),
        )
    resend(turn, attempt.task_id, attempt.number, after=job.stdin_seq)
    if attempt.linger_until is not None and attempt.adapter in WANTS_STDIN:
        turn.do(CloseStdin(task_id=attempt.task_id, attempt=attempt.number))
    if attempt.status is AttemptStatus.STOPPING:
        forced = attempt.force_until is not None
        turn.do(stop_effect(attempt, NO_GRACE if forced else GRACE))


def _start_again(turn: Turn, attempt: Attempt) -> None:
    """Start what the host never heard of, since no other could have started it."""
    if attempt.status is AttemptStatus.STOPPING:
        lose(turn, attempt, proof="never_started")
        return
    begin(turn, attempt)
