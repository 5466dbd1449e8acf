"""Events show what a run's creator wrote without the secrets in it."""

from __future__ import annotations

from crewd.core import events as e
from crewd.core import model as m
from crewd.core import words as w
from crewd.core.spec import RunSpec, TaskSpec
from crewd.core.state import RunState
from crewd.core.units import Instant
from crewd.rpc.convert import BRIEF
from crewd.rpc.encode import encode_event
from crewd.v1.event_pb2 import Event

SECRET = "ghp_" + "a" * 36
SPEC = RunSpec(
    cwd="/w", goal=f"use {SECRET}", labels={"token": "t-secret", "note": SECRET, "team": "blue"}
)
RUN = m.Run(id="run_a", spec=SPEC, title=f"with {SECRET}")


def encoded(event: e.Event) -> Event:
    by = m.Actor(w.ActorKind.DAEMON, "crewd")
    recorded = e.Recorded(event, Instant(1), by, 1)
    return Event.FromString(encode_event(recorded, RunState(RUN), 1)[1])


def test_a_created_run_shows_no_secret() -> None:
    run = encoded(e.RunCreated(run=RUN)).run_created.run
    assert (run.title, run.goal) == ("with ***", "use ***")
    assert dict(run.labels) == {"token": "***", "note": "***", "team": "blue"}


def test_an_added_task_shows_no_secret() -> None:
    spec = TaskSpec(
        id="t", title=SECRET, prompt=f"password: {SECRET}", command=("do", "--api-key", "x")
    )
    event = e.TasksAdded((m.Task(run_id="run_a", id="t", position=0, spec=spec),))
    (task,) = encoded(event).tasks_added.tasks
    assert (task.title, task.prompt) == ("***", "password: ***")
    assert task.command == ["do", "--api-key", "***"]


def test_a_secret_that_would_be_cut_is_masked_whole() -> None:
    for before in range(BRIEF - len(SECRET), BRIEF):
        spec = TaskSpec(id="t", prompt=" " * before + SECRET)
        event = e.TasksAdded((m.Task(run_id="run_a", id="t", position=0, spec=spec),))
        (task,) = encoded(event).tasks_added.tasks
        assert task.prompt == (" " * before + "***")[:BRIEF]
