"""The cases taken from upstream. `decision` names crewd's own rule where it decides differently."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from crewd.core.errors import CrewdError
from crewd.core.events import (
    AskSettled,
    AttemptStarting,
    LimitReached,
    TaskFinished,
    TaskRetryScheduled,
)
from crewd.core.graph import check, find_cycle
from crewd.core.model import Usage
from crewd.core.reports import Used
from crewd.core.retry import may_retry, retry_delay
from crewd.core.spec import Limits, OnTimeout, RetryPolicy, RunSpec, TaskSpec
from crewd.core.state import RunState
from crewd.core.states import RUN_MOVES, TASK_MOVES
from crewd.core.stimuli import Break, GoOn
from crewd.core.units import Span, seconds
from crewd.core.words import AskStatus, Cause, OutboxKind, RunStatus, TaskStatus
from tests.support.builders import (
    BROKEN,
    START,
    a_careful_spec,
    a_question,
    a_spec,
    a_state,
    a_task,
    a_worker,
)
from tests.support.play import Play, Told
from tests.support.waves import waves

Case = Mapping[str, Any]
MS: Final = 1000
NOTHING: Final[Case] = {}
CASES: Final[list[Case]] = json.loads(
    (Path(__file__).parents[1] / "data" / "vectors" / "scheduler.json").read_text()
)


def ms(count: int) -> Span:
    return Span(count * MS)


def specs_of(tasks: list[Case]) -> list[TaskSpec]:
    return [a_task(task["id"], *task.get("dependsOn", ())) for task in tasks]


def statuses_of(tasks: list[Case]) -> dict[str, TaskStatus]:
    return {task["id"]: TaskStatus(task.get("status", "queued")) for task in tasks}


def refusal(tasks: list[TaskSpec]) -> dict[str, Any]:
    try:
        check(tasks)
    except CrewdError as error:
        return {"refused": error.reason.value}
    return {}


def with_completed(given: Case) -> RunState:
    done = dict.fromkeys(given["completed"], TaskStatus.COMPLETED)
    return a_state(a_careful_spec(*specs_of(given["tasks"])), done)


# Transitions and the graph


def run_transition(given: Case) -> Case:
    return {"allowed": given["to"] in RUN_MOVES[RunStatus(given["from"])]}


def task_transition(given: Case) -> Case:
    return {"allowed": given["to"] in TASK_MOVES[TaskStatus(given["from"])]}


def dag_waves(given: Case) -> Case:
    tasks = specs_of(given["tasks"])
    layers = [] if refusal(tasks) else waves({t.id: t.depends_on for t in tasks})
    found = {"hasCycle": False, "waves": [{"taskIds": layer} for layer in layers]}
    return refusal(tasks) or found


def dag_ready(given: Case) -> Case:
    state = with_completed(given)
    ready = sorted(state.ready, key=state.order.index)
    return refusal(specs_of(given["tasks"])) or {"ready": ready}


def dag_cycles(given: Case) -> Case:
    path = find_cycle({task["id"]: task["dependsOn"] for task in given["tasks"]})
    return {"cycles": [sorted(set(path))] if path else []}


def dag_blocked(given: Case) -> Case:
    state = with_completed(given)
    if "task" not in given:
        return {"blocked": [task_id for task_id, count in state.remaining.items() if count]}
    task = state.tasks.get(given["task"])
    needed = task.spec.depends_on if task else ()
    return {"blocking": [d for d in needed if not state.satisfies(state.tasks[d].status)]}


def dag_topo(given: Case) -> Case:
    layers = waves({task["id"]: task["dependsOn"] for task in given["tasks"]})
    return {"order": [task_id for layer in layers for task_id in layer]}


def with_children(given: Case) -> Play:
    """Upstream names children, crewd what a task needs."""
    tasks = given["tasks"]
    parents = {t["id"]: [p["id"] for p in tasks if t["id"] in p["children"]] for t in tasks}
    spec = a_careful_spec(*(a_task(task_id, *needs) for task_id, needs in parents.items()))
    return Play(a_state(spec, statuses_of(tasks)))


def queue_cancel_subtree(given: Case) -> Case:
    play = with_children(given)
    play.cancel_tasks(given["root"])
    play.stopped(given["root"])
    return {"statuses": play.statuses()}


def queue_fail_children(given: Case) -> Case:
    play = with_children(given)
    play.exit(given["root"], BROKEN)
    return {"statuses": play.statuses()}


# Retries


def delay_after(given: Case) -> Case:
    policy = RetryPolicy(
        backoff=ms(given["policy"]["backoffMs"]), jitter=given["policy"]["jitterRatio"]
    )
    return {"delayMs": retry_delay(policy, given["attempt"], given["random"]) // MS}


def attempts_of(retry: RetryPolicy, failures: int = 1000) -> Play:
    """Play one task whose attempts fail so many times, until its run ends."""
    play = Play.of(a_spec(a_task("a", retry=retry), a_task("b", "a")))
    for _ in range(100):
        if not play.state.wanted_slots():
            break
        play.start(*sorted(play.state.ready))
        for task_id in sorted(play.state.live):
            number = play.task(task_id).attempt
            failed = task_id == "a" and number <= failures
            play.exit(task_id, *((BROKEN,) if failed else ()))
        play.wait(1000)
    return play


def retry_execute(given: Case) -> Case:
    retry = RetryPolicy(max_attempts=given["policy"].get("maxAttempts", 3))
    play = attempts_of(retry, given.get("failFirst", 1000))
    calls = play.task("a").attempt
    completed = play.task("a").status is TaskStatus.COMPLETED
    return {"calls": calls, **({"result": "ok"} if completed else {"givenUpAt": calls})}


def retry_enabled(given: Case) -> Case:
    reliability: Case = given["reliability"] or NOTHING
    enabled = reliability.get("autoRetry", True)
    policy = RetryPolicy() if enabled else RetryPolicy(max_attempts=1)
    return {"useRetry": may_retry(policy, 1, retryable=True, cause=Cause.EXIT)}


def retry_action_shortcircuit(given: Case) -> Case:
    tasks = given["tasks"]
    spec = a_careful_spec(*specs_of(tasks))
    state = a_state(spec, statuses_of(tasks), run_status=RunStatus(given["runStatus"]))
    try:
        Play(state).retry(*([given["taskId"]] if given["taskId"] else []))
    except CrewdError:
        return {"nothingToRetry": True}
    return {"nothingToRetry": False}


# Whole runs


def finalise(given: Case) -> Case:
    statuses = {f"t{n}": TaskStatus(status) for n, status in enumerate(given["tasks"])}
    entry = RunStatus(given.get("entry") or given.get("disk") or "running")
    spec = a_careful_spec(*(a_task(task_id) for task_id in statuses))
    play = Play(a_state(spec, statuses, run_status=entry))
    if given.get("abort"):
        play.cancel()
    else:
        play.tell(GoOn())
    return {"status": play.run_status(), "tasks": list(play.statuses().values())}


def cancel_tasks(given: Case) -> Case:
    tasks = given["tasks"]
    play = Play(a_state(a_careful_spec(*specs_of(tasks)), statuses_of(tasks)))
    play.tell(Break("incident_1"))
    return {"statuses": play.statuses()}


def run_behaviour(given: Case) -> Case:
    tasks = given.get("tasks", [{"id": "a"}])
    if refusal(specs_of(tasks)):
        return {"rejectedAtAdmission": True}
    if "failures" in given or "maxRetriesPerTask" in given:
        return _failing(given.get("maxAttempts") or given["maxRetriesPerTask"] + 1)
    play = Play(a_state(a_careful_spec(*specs_of(tasks)), statuses_of(tasks)))
    told = [play.tell(GoOn()), play.dispatch()]
    started = [e for t in told for e in t.events if isinstance(e, AttemptStarting)]
    if play.task("a").status is TaskStatus.WAITING:
        idle = told == [Told(), Told()]
        scheduler = "idle until answered or timed out" if idle else "busy"
        return {"dispatchesOfA": len(started), "scheduler": scheduler}
    ended = play.run_status()
    return {"b": play.task("b").status, "run": ended, "terminates": play.state.is_settled}


def _failing(max_attempts: int) -> Case:
    play = attempts_of(RetryPolicy(max_attempts=max_attempts))
    kinds = [type(recorded.event) for recorded in play.log]
    failed = [r.event for r in play.log if isinstance(r.event, TaskFinished) and r.event.error]
    return {
        "a": play.task("a").status,
        "b": play.task("b").status,
        "run": play.run_status(),
        "workerStarts": kinds.count(AttemptStarting),
        "retryEvents": kinds.count(TaskRetryScheduled),
        "rerunEvents": kinds.count(TaskRetryScheduled),
        "deadletters": len(failed),
    }


def run_deadline(given: Case) -> Case:
    given_ms = given["params"].get("timeoutMs", 0)
    limits = Limits(max_duration=ms(given_ms) if given_ms else None)
    play = Play.running(a_spec(a_task("a"), limits=limits))
    due = play.state.next_due()
    return {"deadlineMs": (due - START) // MS if due else 0, "timerArmed": due is not None}


def budget_check(given: Case) -> Case:
    tasks = [a_worker(task["id"]) for task in given["tasks"]]
    play = Play.running(a_spec(*tasks, limits=Limits(max_tokens=given["total"])))
    for task in given["tasks"]:
        used: Case = task["usage"] or NOTHING
        usage = Usage(
            input_tokens=used.get("input", 0),
            cache_read_tokens=used.get("cacheRead", 0),
            cache_write_tokens=used.get("cacheWrite", 0),
        )
        play.reported(task["id"], Used(usage=usage))
    actions = [r.event.action for r in play.log if isinstance(r.event, LimitReached)]
    usage = play.state.run.usage
    return {
        "abort": "stopped" in actions,
        "warning": "warned" in actions,
        "totalUsed": usage.input_tokens + usage.cache_write_tokens,
    }


# Questions


def asking(expires_in: float | None) -> Play:
    """Task `t` asks `q`, which continues without an answer after so long."""
    play = Play.running(_asker())
    play.accepted("t")
    timeout = None if expires_in is None else seconds(max(0.0, expires_in))
    question = a_question("q", ask_id="q", timeout=timeout, on_timeout=OnTimeout.CONTINUE)
    play.reported("t", question)
    return play


def _asker() -> RunSpec:
    return a_spec(a_worker("t"))


def ask_respond(given: Case) -> Case:
    play = asking(None)
    alive = given.get("heartbeatAgeS", 0) < 60
    if not alive:
        play.exit("t", BROKEN)
    if given.get("existingResponse"):
        play.answer("q", "first")
    try:
        play.answer("q" if given["task"] == "waiting" else "other", "yes")
    except CrewdError as error:
        if not given.get("existingResponse"):
            return {"error": True}
        return {"refused": error.reason.value, "messages": _answers(play)}
    if not alive:
        return {"run": play.run_status(), "taskStatus": play.task("t").status}
    return {"messages": _answers(play), "taskStatus": play.task("t").status}


def _answers(play: Play) -> int:
    return sum(row.kind is OutboxKind.ANSWER for row in play.outbox("t"))


def ask_sweep(given: Case) -> Case:
    if "park" in given:
        play = Play(a_state(_asker(), {"t": TaskStatus.WAITING}))
        play.wait(0)
        return {"requeued": [], "timedOut": _timed_out(play)}
    play = asking(given["deadlineInS"])
    alive = given.get("workerAlive", True)
    if alive is False:
        play.exit("t", BROKEN)
    for _ in range(given.get("sweeps", 1)):
        play.wait(0)
    if isinstance(alive, list):
        play.exit("t", BROKEN)
    requeued = ["t"] if play.task("t").status is TaskStatus.QUEUED else []
    timed_out = _timed_out(play)
    return {
        "requeued": requeued,
        "timedOut": timed_out,
        "eventsInAll": len(timed_out),
        "taskStatus": play.task("t").status,
    }


def _timed_out(play: Play) -> list[str]:
    settled = [r.event for r in play.log if isinstance(r.event, AskSettled)]
    return [event.ask_id for event in settled if event.outcome is AskStatus.TIMED_OUT]


AREAS: Final[Mapping[str, Callable[[Case], Case]]] = {
    "run_transition": run_transition,
    "task_transition": task_transition,
    "dag_waves": dag_waves,
    "dag_ready": dag_ready,
    "dag_cycles": dag_cycles,
    "dag_blocked": dag_blocked,
    "dag_topo": dag_topo,
    "queue_cancel_subtree": queue_cancel_subtree,
    "queue_fail_children": queue_fail_children,
    "retry_delay": delay_after,
    "retry_execute": retry_execute,
    "retry_enabled": retry_enabled,
    "retry_action_shortcircuit": retry_action_shortcircuit,
    "finalise": finalise,
    "cancel_tasks": cancel_tasks,
    "run_behaviour": run_behaviour,
    "run_deadline": run_deadline,
    "budget_check": budget_check,
    "ask_respond": ask_respond,
    "ask_sweep": ask_sweep,
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['area']}: {case['case']}")
def test_a_case_comes_out_as_expected(case: Case) -> None:
    found = AREAS[case["area"]](case["input"])

    assert {key: found.get(key) for key in case["expect"]} == case["expect"]


def test_every_area_has_cases_and_every_deviation_says_why() -> None:
    assert {case["area"] for case in CASES} == set(AREAS)
    for case in CASES:
        assert ("decision" in case) is ("upstream_expect" in case)
        assert case.get("decision", "A.").endswith(".")
