"""Whatever people, workers, the host, the clock and crashes do, in whatever order."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from crewd.core import advance, due, turn
from crewd.core import stimuli as s
from crewd.core.apply import apply
from crewd.core.effects import Decision
from crewd.core.events import Event
from crewd.core.marks import Mark, OutboxQueued
from crewd.core.model import Answer, Survivor, Usage
from crewd.core.prompt import dependencies
from crewd.core.reports import AskWithdrawn, Hello, Message, ProgressMade, Report, SteerSeen, Used
from crewd.core.spec import Adapter, RunSpec
from crewd.core.state import RunState
from crewd.core.units import Instant, seconds
from crewd.core.words import AskStatus, OutboxKind
from tests.support import checks
from tests.support.agents import DEEDS, words_of
from tests.support.builders import (
    OPERATOR,
    YES_NO,
    a_create,
    a_question,
    a_result,
    an_empty_state,
)
from tests.support.drawn_specs import crews, specs, tasks
from tests.support.driver import Before, Crash, Driver
from tests.support.fake_host import Job, Key
from tests.support.rest import check_rest, come_to_rest, ends
from tests.support.rows import Rows

LISTENING = Hello(capabilities=checks.CAN_STEER)
TROUBLE = (
    "crash before the commit",
    "crash after the commit",
    "crash",
    "lose the host",
    "lose the connection",
)
WISHES = (*("retry", "resume", "steer", "cancel task", *s.Resolution) * 2, "cancel", "force")
REFS = st.sampled_from(["q1", "q2"])
INDEX = st.integers(0, 30)


class Watched(RuleBasedStateMachine):
    """Looks at every decision, and at the state after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = pytest.MonkeyPatch()
        self.patches.setattr(turn, "apply", self.apply)
        self.patches.setattr(advance, "SLICE", 2)
        self.patches.setattr(due, "SLICE", 2)
        self.patches.setattr(dependencies, "EACH_CHARACTERS", 8)
        self.driver = Driver(self.observe)
        self.stimuli = 0
        self.count = 0

    def apply(self, state: RunState, fact: Event | Mark, now: Instant) -> None:
        """Note each fact as it is applied: marks are not part of a decision."""
        self.driver.facts.append((fact, now))
        apply(state, fact, now)

    @property
    def state(self) -> RunState:
        return self.driver.state

    def observe(self, before: Before, _stimulus: s.Stimulus, decision: Decision) -> None:
        state = self.state
        self.stimuli += 1
        checks.check_needs(state, decision)
        checks.check_slots(state)
        checks.check_promises(state)
        if not before.reopening:
            checks.check_left_alone(before.statuses, state)
        assert len(decision.events) <= 6 + 5 * len(state.tasks), "too much is told of one thing"
        for fact, _ in self.driver.facts:
            if isinstance(fact, OutboxQueued) and fact.row.kind is OutboxKind.ANSWER:
                self.check_told_once(fact)
        last = self.driver.events[-1].run_sequence if self.driver.events else 0
        sequences = [recorded.run_sequence for recorded in decision.events]
        assert sequences == list(range(last + 1, last + 1 + len(sequences)))

    def check_told_once(self, fact: OutboxQueued) -> None:
        row = fact.row
        committed = {
            (k.row.task_id, k.row.attempt, k.row.ref)
            for commit in self.driver.commits
            for k, _ in commit.facts
            if isinstance(k, OutboxQueued)
        }
        assert (row.task_id, row.attempt, row.ref) not in committed, "an answer is told twice"

    @invariant()
    def holds(self) -> None:
        driver, state = self.driver, self.state
        if not state.run.last_run_sequence:
            return
        checks.check_rows(state, driver.rows)
        checks.check_jobs(driver.host.jobs, driver.rows)
        checks.check_progress(state, continues=driver.continues)
        if not driver.continues:
            checks.check_end(state)
        checks.check_indexes(state, driver.rows.load(), driver.now)

    def teardown(self) -> None:
        try:
            if self.driver.commits:
                self.rest()
                assert len(self.driver.events) <= 12 * (self.stimuli + len(self.state.tasks))
                self.replay()
        finally:
            self.patches.undo()

    def rest(self) -> None:
        """All ends that can, and in the same way if the daemon has started anew before."""
        driver = self.driver
        driver.crash = None
        while driver.news:
            driver.hear()
        restarted = driver.fork()
        restarted.restart()
        for one in (driver, restarted):
            come_to_rest(one)
            check_rest(one)
            driver.facts = []
        self.holds()
        assert ends(driver) == ends(restarted), "a restart has changed what became of the run"

    def replay(self) -> None:
        """Facts folded over nothing give the rows."""
        state, rows = an_empty_state(), Rows()
        for commit in self.driver.commits:
            for fact, now in commit.facts:
                apply(state, fact, now)
            rows.store(state.take_changes(commit.sequence))
        assert vars(rows) == vars(self.driver.rows)


class RunMachine(Watched):
    """What people, workers, the host, the clock and crashes may do, in any order."""

    @initialize(spec=st.one_of(specs(tasks()), specs(crews())), host_first=st.booleans())
    def create(self, spec: RunSpec, *, host_first: bool) -> None:
        if host_first:
            self.driver.connect(recovery=False)
        self.driver.tell(a_create(spec))
        self.driver.connect(recovery=False)

    # The daemon

    @rule(slots=st.integers(1, 4))
    def dispatch(self, slots: int) -> None:
        self.driver.tell(s.Capacity(slots))

    @rule(slots=st.integers(1, 4))
    def work(self, slots: int) -> None:
        """Everything goes as it should for a while."""
        driver = self.driver
        if not driver.connected:
            driver.connect(recovery=True)
        for _ in range(5):
            if driver.continues:
                driver.tell(s.GoOn())
        driver.tell(s.Resume(actor=OPERATOR))
        driver.tell(s.Capacity(slots))
        while driver.texts:
            driver.keep(0)
        for key in list(driver.host.passes):
            driver.news += driver.host.pass_on(key)
        for key in list(driver.host.queue):
            self.launch_one(key)
        while driver.news:
            driver.hear()

    @precondition(lambda self: self.driver.continues)
    @rule()
    def go_on(self) -> None:
        self.driver.tell(s.GoOn())

    @rule(span=st.sampled_from([0, 1, 3, 6, 25, 150]))
    def pass_time(self, span: int) -> None:
        self.driver.pass_time(seconds(span))

    @rule(trouble=st.sampled_from(TROUBLE), performed=st.integers(0, 3))
    def break_something(self, trouble: str, performed: int) -> None:
        driver = self.driver
        driver.heard = performed % 2 == 1
        match trouble:
            case "crash before the commit":
                driver.crash = Crash(committed=False, performed=0)
            case "crash after the commit":
                driver.crash = Crash(committed=True, performed=performed)
            case "crash":
                driver.restart()
            case "lose the host":
                driver.host.die()
                if driver.connected:
                    driver.disconnect()
            case _ if driver.connected:
                driver.disconnect()
            case _:
                driver.connect(recovery=performed == 0)

    # The host and its workers

    @precondition(lambda self: self.driver.news)
    @rule()
    def hear(self) -> None:
        self.driver.hear()

    @precondition(lambda self: self.driver.host.queue)
    @rule(index=INDEX, refusal=st.sampled_from([None, None, None, *s.Refusal]))
    def launch(self, index: int, refusal: s.Refusal | None) -> None:
        host = self.driver.host
        key = list(host.queue)[index % len(host.queue)]
        if refusal is not None:
            self.driver.news.append(host.refuse(key, refusal))
            return
        self.launch_one(key)

    def launch_one(self, key: Key) -> None:
        self.driver.news.append(self.driver.host.launch(key))

    @precondition(lambda self: self.driver.texts)
    @rule(index=INDEX, room=st.sampled_from([True, True, True, False]))
    def keep(self, index: int, *, room: bool) -> None:
        self.driver.keep(index, room=room)

    @precondition(lambda self: self.agents())
    @rule(index=INDEX, deed=st.sampled_from(DEEDS))
    def go_about(self, index: int, deed: str) -> None:
        key, job = self.one_of(self.agents(), index)
        self.hear_from(key, job, words_of(job, deed))

    @precondition(lambda self: self.driver.host.jobs)
    @rule(index=INDEX, kind=st.sampled_from(["hello", "text", "step", "use", "drop"]), ref=REFS)
    def speak(self, index: int, kind: str, ref: str) -> None:
        self.say(index, kind, ref)

    @precondition(lambda self: self.driver.host.jobs)
    @rule(index=INDEX, ref=REFS)
    def ask(self, index: int, ref: str) -> None:
        self.say(index, "ask", ref)

    def say(self, index: int, kind: str, ref: str) -> None:
        key, job = self.pick(index)
        can = job.listens and not (job.handed_in or job.over)
        self.hear_from(key, job, self.line(job, kind, ref) if can else ())

    def hear_from(self, key: Key, job: Job, reports: Iterable[Report]) -> None:
        job.said.append(tuple(reports))
        if self.driver.connected:
            self.driver.read(key, job)

    @precondition(lambda self: self.driver.host.jobs)
    @rule(index=INDEX)
    def hand_in(self, index: int) -> None:
        key, job = self.pick(index)
        can = job.adapter == Adapter.JSONL and not job.handed_in
        job.handed_in |= can
        self.hear_from(key, job, (a_result(),) if can else ())

    @precondition(lambda self: self.driver.host.jobs)
    @rule(index=INDEX, code=st.sampled_from([0, 0, 1]), survives=st.sampled_from([0, 0, 0, 9]))
    def exit(self, index: int, code: int, survives: int) -> None:
        key, _ = self.pick(index)
        survivors = (Survivor(survives, "stray"),) if survives else ()
        exited = self.driver.host.end(key, code, survivors=survivors)
        if self.driver.connected:
            self.driver.news.append(exited)
            self.driver.hear()

    @precondition(lambda self: self.driver.connected and self.driver.host.jobs)
    @rule(index=INDEX)
    def take_messages(self, index: int) -> None:
        (task, number), job = self.pick(index)
        self.driver.tell(s.OutboxRoom(task_id=task, attempt=number))
        self.driver.news.append(s.OutboxAccepted(task_id=task, attempt=number, seq=job.stdin_seq))

    # People

    @rule(wish=st.sampled_from(WISHES), index=INDEX)
    def wish(self, wish: str, index: int) -> None:
        self.count += 1
        by, task_id = OPERATOR, self.task_id(index)
        steer_id = f"steer_{self.count}"
        wishes: dict[str, s.Command] = {
            "cancel": s.Cancel(reason="enough", actor=by),
            "force": s.Cancel(reason="now", actor=by, force=True),
            "cancel task": s.CancelTasks(task_ids=(task_id,), reason="no", actor=by),
            "resume": s.Resume(actor=by),
            "retry": s.Retry(actor=by, task_ids=(task_id,)),
            "steer": s.Steer(task_id=task_id, steer_id=steer_id, text="mind", actor=by),
        }
        for resolution in s.Resolution:
            wishes[resolution] = s.Resolve(
                task_id=task_id, resolution=resolution, note="", actor=by
            )
        self.driver.tell(wishes[wish])

    @precondition(lambda self: self.state.run.open_ask_count)
    @rule(index=INDEX, decline=st.booleans())
    def answer(self, index: int, *, decline: bool) -> None:
        asks = [a.id for a in self.state.asks.values() if a.status is AskStatus.OPEN]
        ask_id = asks[index % len(asks)]
        given = Answer(option_ids=("yes",))
        assert self.driver.tell(
            s.AnswerAsk(ask_id=ask_id, answer=given, actor=OPERATOR, decline=decline)
        )
        again = s.AnswerAsk(ask_id=ask_id, answer=given, actor=OPERATOR)
        if self.state.asks[ask_id].status is not AskStatus.OPEN:
            assert not self.driver.tell(again), "answered twice"

    # What is always true

    def line(self, job: Job, kind: str, ref: str) -> list[Report]:
        match kind:
            case "hello":
                return [LISTENING]
            case "text":
                return [Message("working"), SteerSeen("steer_1")]
            case "step":
                return [ProgressMade(text="half", percent=50.0)]
            case "use":
                return [Used(usage=Usage(input_tokens=30, turns=1))]
            case "drop":
                return [AskWithdrawn(ref)]
            case _:
                return self.question(job, ref)

    def question(self, job: Job, ref: str) -> list[Report]:
        if ref in job.refs:
            return []
        job.refs.add(ref)
        self.count += 1
        return [
            a_question(
                ref, question=f"{ref}?", options=YES_NO, default="no", ask_id=f"ask_{self.count}"
            )
        ]

    def pick(self, index: int) -> tuple[Key, Job]:
        return self.one_of(list(self.driver.host.jobs.items()), index)

    def one_of(self, jobs: list[tuple[Key, Job]], index: int) -> tuple[Key, Job]:
        return jobs[index % len(jobs)]

    def agents(self) -> list[tuple[Key, Job]]:
        jobs = self.driver.host.jobs.items()
        return [(key, job) for key, job in jobs if job.adapter == Adapter.PI]

    def task_id(self, index: int) -> str:
        assume(self.state.order)
        return self.state.order[index % len(self.state.order)]


TestRun = RunMachine.TestCase
TestRun.settings = settings(
    max_examples=100,
    stateful_step_count=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
