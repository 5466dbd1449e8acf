"""Between the runs and the host: effects go out as jobs, what the host tells comes in as stimuli.

The only part of the runtime that knows host job keys (`run/task/number`). What is sent while the
host does not answer is dropped: `HostReady` has every run send again what its rows still want.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final, NamedTuple, TypedDict

import structlog

from crewd.core import effects as fx
from crewd.core import stimuli as s
from crewd.core.dispatch import start_effect
from crewd.core.messages import next_of, with_variables
from crewd.core.model import Outbox
from crewd.core.redaction.known import KnownSecrets
from crewd.core.redaction.masking import Masking
from crewd.core.redaction.redactor import redact, redact_arguments
from crewd.core.state import RunState
from crewd.core.words import OutboxKind
from crewd.runtime.actor import Actor
from crewd.runtime.pump import Pump, PumpTools, silent_exit
from crewd.workers import host_link as host
from crewd.workers.environment import Environment, MissingVariableError
from crewd.workers.registry import adapter_for
from crewd.workers.text import cut

log = structlog.get_logger()

SHOWN_BYTES: Final = 1024
"""Of each argument of a command that was started."""
ORPHAN_GRACE: Final = timedelta(0)


NOT_ITS_FAULT: Final = frozenset({"epoch", "shutting_down", "lost"})
"""Refusals that say something of the host only: the start is made again and costs no attempt."""


class JobKey(NamedTuple):
    run_id: str
    task_id: str
    number: int

    @classmethod
    def of(cls, job: str) -> JobKey:
        run_id, task_id, number = job.split("/")
        return cls(run_id, task_id, int(number))

    @property
    def in_run(self) -> str:
        return f"{self.task_id}/{self.number}"

    def __str__(self) -> str:
        return f"{self.run_id}/{self.task_id}/{self.number}"


class Sources(TypedDict):
    """What `Environment` builds from, and looks for secrets in."""

    given: Mapping[str, str]
    named: Sequence[str]
    offered: Sequence[str]
    own: Mapping[str, str]


class Jobs:
    """Performs effects and routes the host's news."""

    def __init__(
        self,
        tools: PumpTools,
        environment: Environment,
        *,
        own_variables: Callable[[JobKey], Mapping[str, str]],
        find: Callable[[str], Actor | None],
        spawn: Callable[[str, Pump], asyncio.Task[None]],
    ) -> None:
        self._tools = tools
        self._link = tools.link
        self._environment = environment
        self._own = own_variables
        self._find = find
        self._spawn = spawn
        self._started: dict[str, tuple[str, ...]] = {}
        """What the host was told to start and has not told of yet."""
        self._pumps: dict[str, tuple[Pump, asyncio.Task[None]]] = {}

    def perform(self, run_id: str, state: RunState, effects: Sequence[fx.Effect]) -> None:
        """Tell the host what a committed decision wants of it."""
        forgotten = [
            str(JobKey(run_id, effect.task_id, effect.attempt))
            for effect in effects
            if isinstance(effect, fx.ForgetWorker)
        ]
        for effect in effects:
            if isinstance(effect, fx.StartWorker):
                self._start(run_id, effect)
            else:
                self._send(run_id, state, effect)
        if forgotten:
            self._forget(forgotten)

    def drop(self, run_id: str) -> None:
        """Stop reading for a run whose rows are about to be loaded again."""
        prefix = f"{run_id}/"
        for job in [job for job in self._pumps if job.startswith(prefix)]:
            self._pumps.pop(job)[1].cancel()

    def heard(self, news: host.News) -> None:
        """Pass on what the host told of one job."""
        match news:
            case host.Started(job=job, pid=pid):
                key = JobKey.of(job)
                argv = self._started.pop(job, ())
                started = s.WorkerStarted(
                    task_id=key.task_id, attempt=key.number, pid=pid, argv=argv
                )
                self._tell(key, started)
            case host.StartRefused(job=job, kind=kind, message=message):
                self._started.pop(job, None)
                self._refuse(JobKey.of(job), kind, message)
            case host.Output(job=job, stdout=stdout, stderr=stderr):
                self._output(job, stdout, stderr)
            case host.Exit(exit=seen):
                self._exit(seen)
            case host.Written(job=job, stdin_seq=seq):
                key = JobKey.of(job)
                self._tell(key, s.OutboxAccepted(task_id=key.task_id, attempt=key.number, seq=seq))
            case host.StdinRoom(job=job):
                key = JobKey.of(job)
                self._tell(key, s.OutboxRoom(task_id=key.task_id, attempt=key.number))
            case host.WriteRefused(job=job, kind=kind):
                log.info("write_refused", job=job, kind=kind)
            case _:
                pass

    def introduce(self, actor: Actor, snapshot: host.HostSnapshot, *, recovery: bool) -> None:
        """Tell a run what the host has of it, then replay what happened meanwhile."""
        jobs, exits = of_run(snapshot, actor.run_id)
        actor.tell(self.ready(actor.run_id, snapshot, (jobs, exits), recovery=recovery))
        self.replay(actor.state, jobs, exits)

    def ready(
        self,
        run_id: str,
        snapshot: host.HostSnapshot,
        seen: tuple[Iterable[host.JobSeen], Iterable[host.ExitSeen]] = ((), ()),
        *,
        recovery: bool = False,
    ) -> s.HostReady:
        """Return what tells a run that the host is there, and what it has of the run."""
        jobs, exits = seen
        return s.HostReady(
            epoch=snapshot.epoch,
            host=f"{snapshot.boot_id}/{snapshot.pid}",
            live={
                JobKey.of(job.job).in_run: s.LiveJob(
                    pid=job.pid, stdin_seq=job.stdin_seq, stopping=job.stopping
                )
                for job in jobs
            },
            exiting=frozenset(JobKey.of(seen.job).in_run for seen in exits),
            recovery=recovery,
            artifacts=str(self._tools.artifacts.folder(run_id)),
        )

    def replay(
        self, state: RunState, jobs: Iterable[host.JobSeen], exits: Iterable[host.ExitSeen]
    ) -> None:
        """Read on where the rows stop; end what the rows no longer know."""
        for job in jobs:
            key = JobKey.of(job.job)
            if state.live_attempt(key.task_id, key.number) is None:
                self.stop_orphan(job.job)
            elif job.stdout or job.stderr:
                self._output(job.job, job.stdout, job.stderr)
        for seen in exits:
            self._exit(seen)

    def stop_orphan(self, job: str) -> None:
        """End a job that no run wants: its run was deleted, or settled it without proof."""
        log.warning("orphan_stopped", job=job)
        self._link.stop(job, ORPHAN_GRACE)

    def _send(self, run_id: str, state: RunState, effect: fx.Effect) -> None:
        match effect:
            case fx.WriteWorker(row=row):
                adapter = adapter_for(state.attempts[row.task_id].adapter)
                data = adapter.encode(row.kind, self._body(run_id, row)).decode()
                self._link.write(str(JobKey(run_id, row.task_id, row.attempt)), row.seq, data)
            case fx.PassWorker():
                giver = JobKey(run_id, effect.giver_task_id, effect.giver_attempt)
                heir = JobKey(run_id, effect.task_id, effect.attempt)
                self._link.pass_on(str(giver), str(heir), effect.epoch)
            case fx.CloseStdin(task_id=task_id, attempt=number):
                self._link.close_stdin(str(JobKey(run_id, task_id, number)))
            case fx.StopWorker(task_id=task_id, attempt=number, grace_ms=grace):
                job = str(JobKey(run_id, task_id, number))
                self._link.stop(job, timedelta(milliseconds=grace))
            case _:
                pass

    def _body(self, run_id: str, row: Outbox) -> str:
        """Return what a row says, with what a start would have told a process that goes on."""
        if row.kind is not OutboxKind.NEXT:
            return row.body
        return with_variables(row.body, self._own(JobKey(run_id, *next_of(row.body))))

    def _start(self, run_id: str, effect: fx.StartWorker) -> None:
        key = JobKey(run_id, effect.task_id, effect.attempt)
        try:
            environment = self._environment.build(path=effect.path, **self._sources(key, effect))
        except MissingVariableError as error:
            self._refuse(key, s.Refusal.ENVIRONMENT_MISSING, str(error))
            return
        arguments = adapter_for(effect.adapter).arguments(effect)
        argv = (effect.executable, *effect.argv[1:], *arguments)
        self._started[str(key)] = _shown(argv)
        self._link.start(
            host.StartJob(
                job=str(key),
                epoch=effect.epoch,
                argv=argv,
                cwd=effect.cwd,
                env=environment,
                stdin=effect.stdin,
                keep_children=effect.keep_children,
            )
        )

    def masking(self, key: JobKey) -> Masking:
        """Return what masks the secrets of an attempt's worker."""
        actor = self._find(key.run_id)
        task = actor.state.tasks.get(key.task_id) if actor else None
        if actor is None or task is None:
            return Masking()
        start = start_effect(actor.state, task, key.number)
        return Masking(KnownSecrets(self._environment.secrets(**self._sources(key, start))))

    def _sources(self, key: JobKey, start: fx.StartWorker) -> Sources:
        """Return where the variables of a worker come from, apart from its PATH."""
        model = start.model or (start.agent.model if start.agent else "")
        return Sources(
            given=start.env,
            named=start.env_from,
            offered=adapter_for(start.adapter).variables(model),
            own=self._own(key),
        )

    def _output(self, job: str, stdout: int, stderr: int) -> None:
        pump = self._pump(job)
        if pump is not None:
            pump.output(stdout, stderr)

    def _exit(self, seen: host.ExitSeen) -> None:
        key = JobKey.of(seen.job)
        actor = self._find(key.run_id)
        attempt = actor.state.live_attempt(key.task_id, key.number) if actor else None
        if actor is None or attempt is None:
            self._forget([seen.job])
        elif seen.job in self._pumps or seen.stdout or seen.stderr:
            pump = self._pump(seen.job)
            if pump is not None:
                pump.exit(seen)
        else:
            actor.tell(silent_exit(attempt, seen))

    def _pump(self, job: str) -> Pump | None:
        if job in self._pumps:
            return self._pumps[job][0]
        key = JobKey.of(job)
        actor = self._find(key.run_id)
        attempt = actor.state.live_attempt(key.task_id, key.number) if actor else None
        if actor is None or attempt is None:
            return None
        spec = actor.state.tasks[key.task_id].spec
        pump = Pump(attempt, spec, self._tools, actor.ask, self.masking(key))
        self._pumps[job] = pump, self._spawn(job, pump)
        return pump

    def _forget(self, jobs: Sequence[str]) -> None:
        for job in jobs:
            known = self._pumps.pop(job, None)
            if known is not None:
                known[1].cancel()
        self._link.forget(jobs)

    def _refuse(self, key: JobKey, kind: str, message: str) -> None:
        known = kind in s.Refusal.__members__.values()
        other = s.Refusal.TRANSIENT if kind in NOT_ITS_FAULT else s.Refusal.SPAWN
        self._tell(
            key,
            s.WorkerRefused(
                task_id=key.task_id,
                attempt=key.number,
                kind=s.Refusal(kind) if known else other,
                message=redact(message),
            ),
        )

    def _tell(self, key: JobKey, stimulus: s.Stimulus) -> None:
        actor = self._find(key.run_id)
        if actor is not None:
            actor.tell(stimulus)


def _shown(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command as people may see it: a system prompt is long, a password is masked."""
    return tuple(cut(each, SHOWN_BYTES) for each in redact_arguments(argv))


def of_run(
    snapshot: host.HostSnapshot, run_id: str
) -> tuple[list[host.JobSeen], list[host.ExitSeen]]:
    """Return what the host has of one run: its live jobs, and those that have ended."""
    prefix = f"{run_id}/"
    return (
        [job for key, job in snapshot.jobs.items() if key.startswith(prefix)],
        [seen for key, seen in snapshot.exits.items() if key.startswith(prefix)],
    )
