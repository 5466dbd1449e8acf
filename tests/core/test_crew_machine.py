"""Agents much alike, whose processes are handed on in the midst of all that may go wrong."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from crewd.core import stimuli as s
from crewd.core.spec import RunSpec
from tests.core.test_machine import INDEX, RunMachine
from tests.support.agents import RENEWALS, renewal_of, words_of
from tests.support.builders import OPERATOR, a_create
from tests.support.drawn_specs import crews, specs
from tests.support.fake_host import Job, Key

STEPS = ("end its turn", "begin anew", "keep the texts", "pass")
TROUBLE = ("cancel its heir", "cancel its giver", "its giver exits", "the host answers")
HAND_INS = ("data and done", "done", "data and done", "data")


class CrewMachine(RunMachine):
    """What the run machine may do, and every step by which a process is handed on."""

    @initialize(spec=specs(crews()))
    def create(self, spec: RunSpec) -> None:
        self.driver.tell(a_create(spec))
        self.driver.connect(recovery=False)

    @rule(
        slots=st.integers(1, 3),
        index=INDEX,
        deed=st.sampled_from(HAND_INS),
        last=st.sampled_from(STEPS),
    )
    def hand_over(self, slots: int, index: int, deed: str, last: str) -> None:
        """Take an agent as far as this step of handing its process on."""
        self.work(slots)
        ready = [(key, job) for key, job in self.agents() if not (job.over or job.stopping)]
        if not ready or not self.driver.connected:
            return
        key, job = self.one_of(ready, index)
        self.hear_from(key, job, words_of(job, deed))
        for step in STEPS[1 : STEPS.index(last) + 1]:
            self.take_step(step, key, job)

    @precondition(lambda self: self.state.promised)
    @rule(index=INDEX, trouble=st.lists(st.sampled_from(TROUBLE), min_size=1, max_size=2))
    def interfere(self, index: int, trouble: list[str]) -> None:
        """Have something come between a promise and its pass."""
        driver = self.driver
        heirs = list(self.state.promised)
        heir = heirs[index % len(heirs)]
        promised = self.state.promised[heir]
        giver = promised.task_id, promised.attempt
        for what in trouble:
            if what == "its giver exits" and giver in driver.host.jobs:
                driver.news.append(driver.host.end(giver, 0))
            elif what == "the host answers":
                for key in list(driver.host.passes):
                    driver.news += driver.host.pass_on(key)
            elif what.startswith("cancel"):
                task_id = heir if what == "cancel its heir" else giver[0]
                driver.tell(s.CancelTasks(task_ids=(task_id,), reason="no", actor=OPERATOR))

    def take_step(self, step: str, key: Key, job: Job) -> None:
        driver = self.driver
        match step:
            case "begin anew" if job.to_renew:
                self.hear_from(key, job, renewal_of("opened and renewed"))
            case "keep the texts":
                while driver.texts:
                    driver.keep(0)
            case "pass":
                for heir in list(driver.host.passes):
                    driver.news += driver.host.pass_on(heir)
            case _:
                pass

    @precondition(lambda self: self.driver.host.passes)
    @rule(index=INDEX, willing=st.sampled_from([True, True, False]), exit_first=st.booleans())
    def pass_on(self, index: int, *, willing: bool, exit_first: bool) -> None:
        host = self.driver.host
        key = list(host.passes)[index % len(host.passes)]
        self.driver.news += host.pass_on(key, willing=willing, exit_first=exit_first)

    @precondition(lambda self: self.renewing())
    @rule(index=INDEX, deed=st.sampled_from(RENEWALS))
    def renew(self, index: int, deed: str) -> None:
        self.hear_from(*self.one_of(self.renewing(), index), renewal_of(deed))

    def renewing(self) -> list[tuple[Key, Job]]:
        return [(key, job) for key, job in self.agents() if job.to_renew]


TestCrew = CrewMachine.TestCase
TestCrew.settings = settings(
    max_examples=120,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
