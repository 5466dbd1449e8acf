"""A run that nobody touches any more: what is under way comes to its end, and time passes."""

from __future__ import annotations

from typing import Final

from crewd.core import stimuli as s
from crewd.core.model import Attempt
from crewd.core.spec import Adapter
from crewd.core.words import AttemptStatus, TaskStatus
from tests.support.driver import Driver
from tests.support.fake_host import FakeHost, Key, News

JUMPS: Final = 25
"""More deadlines than can follow on each other in a run where nothing new starts."""


def come_to_rest(driver: Driver) -> None:
    """Have the host do all it was asked to, and let whatever time pass; workers fall silent."""
    driver.crash = None
    if not driver.connected:
        driver.connect(recovery=False)
    for _ in range(JUMPS):
        work_off(driver)
        due = driver.state.next_due()
        if due is None:
            return
        driver.now = max(driver.now, due)
        driver.tell(s.Due())


def work_off(driver: Driver) -> None:
    """Have done all that needs no time: texts, passes, starts, news, and ends of what must end."""
    more = True
    while more:
        for key, job in list(driver.host.jobs.items()):
            driver.read(key, job)
        more = driver.continues
        if more:
            driver.tell(s.GoOn())
        elif driver.news:
            driver.hear()
            more = True
        elif driver.texts:
            driver.keep(0)
            more = True
        else:
            driver.news = _next_of_the_host(driver.host)
            more = bool(driver.news)


def _next_of_the_host(host: FakeHost) -> News:
    """Do the next thing, always in the same order: which task fails first can decide a run."""
    if host.passes:
        return host.pass_on(min(host.passes))
    if host.queue:
        return [host.launch(min(host.queue))]
    leaving = [key for key, job in host.jobs.items() if job.stopping or job.stdin_closed]
    return [host.end(min(leaving), 0)] if leaving else []


def check_rest(driver: Driver) -> None:
    """No process is left that nobody waits for, and no attempt that no process works on."""
    state, host = driver.state, driver.host
    assert not state.promised, "a process is promised for ever"
    unwanted = [key for key in host.jobs if state.live_attempt(*key) is None]
    assert not unwanted, f"{unwanted} run for nobody"
    for task_id in state.live:
        attempt = state.attempts[task_id]
        key: Key = task_id, attempt.number
        assert attempt.status is not AttemptStatus.STARTING, f"{key} never starts"
        assert key in host.jobs, f"{key} waits for a process that is gone"
        assert attempt.linger_until is None, f"{key} has done and never leaves"
        if attempt.adapter == Adapter.PI:
            _check_agent(driver, attempt)


def ends(driver: Driver) -> dict[str, tuple[object, ...]]:
    """Return what became of each task, in words that do not depend on how it came to be."""
    state = driver.state
    told: dict[str, tuple[object, ...]] = {"": (state.run.status, state.run.stopping)}
    for task_id, task in state.tasks.items():
        attempt = state.attempts.get(task_id)
        outcome = (attempt.number, attempt.outcome, attempt.cause) if attempt else ()
        told[task_id] = (task.status, task.result, task.spent_attempts, *outcome)
    return told


def _check_agent(driver: Driver, attempt: Attempt) -> None:
    """Only a person or a tool may keep a silent agent."""
    task = driver.state.tasks[attempt.task_id]
    kept = task.status is TaskStatus.WAITING or task.current_tool
    assert kept, f"{attempt.key} is silent for ever"
