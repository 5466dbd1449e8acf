from __future__ import annotations

from typing import get_args

import pytest

from crewd.core import events as e
from crewd.core import model as m
from crewd.core import words as w
from crewd.core.spec import RunSpec, TaskSpec
from crewd.core.state import RunState
from crewd.core.units import Instant
from crewd.rpc.encode import EVENT_BYTES, encode_event
from crewd.rpc.payloads import KINDS
from crewd.v1.event_pb2 import Event

AT = Instant(1_750_000_000_123_456)
RUN = m.Run(
    id="run_a",
    spec=RunSpec(cwd="/w", goal="g"),
    task_counts={w.TaskStatus.COMPLETED: 2},
    usage=m.Usage(turns=3),
)
TASK = m.Task(run_id="run_a", id="t", position=0, spec=TaskSpec(id="t", command=("true",)))
ASK = m.Ask(id="ask_a", run_id="run_a", task_id="t", attempt=2, question="which?")
LONG = "ü" * 200_000
OF_T = {"task_id": "t", "attempt": 2}

EVENTS: list[e.Event] = [
    e.RunCreated(run=RUN),
    e.TasksAdded((TASK,)),
    e.RunStarted(),
    e.RunBlocked(reason="needs_attention", detail="t", task_ids=("t",)),
    e.RunCancelRequested(reason="enough", force=True),
    e.RunResumed(cause="retry", requeued_task_ids=("t",)),
    e.RunFinished(status=w.RunStatus.COMPLETED, result=m.Result(text="r")),
    e.RunRecovered(adopted=("t/1",), lost=()),
    e.RunDeleted(freed_bytes=7),
    e.TaskRetryScheduled(task_id="t", next_attempt=3, not_before=AT, cause=w.Cause.EXIT),
    e.TaskRequeued(task_id="t", cause="retry"),
    e.TaskFinished(task_id="t", status=w.TaskStatus.FAILED, reason="exit"),
    e.TaskHeld(task_id="t", reason="slots"),
    e.AttemptStarting(task_id="t", attempt=2, adapter="command", epoch="e1"),
    e.AttemptStarted(task_id="t", attempt=2, pid=42, host="h"),
    e.AttemptStopping(task_id="t", attempt=2, cause="timeout"),
    e.AttemptEnded(task_id="t", attempt=2, outcome=w.Outcome.COMPLETED, exit_code=0),
    e.TaskProgressed(task_id="t", attempt=2, progress=m.Progress(percent=0.0)),
    e.MessagePosted(task_id="t", attempt=2, role="assistant", text="hello"),
    e.ToolStarted(task_id="t", attempt=2, tool_id="1", name="bash"),
    e.ToolEnded(task_id="t", attempt=2, tool_id="1", is_error=True),
    e.UsageReported(task_id="t", attempt=2, delta=m.Usage(cost_micros=0)),
    e.ProviderErrorReported(task_id="t", attempt=2, cause=w.Cause.THROTTLED, message="wait"),
    e.AskOpened(ASK),
    e.AskAttached(ask_id="ask_a", task_id="t", attempt=3, worker_ref="q1"),
    e.AskSettled(ask_id="ask_a", task_id="t", attempt=2, outcome=w.AskStatus.ANSWERED),
    e.AskDelivered(ask_id="ask_a", task_id="t", attempt=2, delivery=w.Delivery.DELIVERED),
    e.SteerUpdated(task_id="t", attempt=2, steer_id="steer_a", status="queued", text="left"),
    e.ArtifactRecorded(m.Artifact(id="art_a", run_id="run_a", task_id="t", attempt=2, name="a")),
    e.LimitReached(reason="max_turns", used=3, maximum=2, action="stopped"),
    e.WarningRaised(code="spill", message="long line", task_id="t", attempt=2),
]


def encoded(event: e.Event, actor: m.Actor = m.DAEMON) -> Event:
    recorded = e.Recorded(event, AT, actor, 5, w.RunStatus.RUNNING, w.TaskStatus.RUNNING)
    kind, data = encode_event(recorded, RunState(RUN), 77)
    assert len(data) <= EVENT_BYTES
    parsed = Event.FromString(data)
    assert parsed.kind == kind
    return parsed


def test_every_event_of_the_core_has_a_kind_of_the_contract() -> None:
    assert {type(event) for event in EVENTS} == set(get_args(e.Event))
    assert {encoded(event).kind for event in EVENTS} == KINDS


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_the_kind_names_the_payload_and_the_envelope_is_whole(event: e.Event) -> None:
    told = encoded(event, m.Actor(w.ActorKind.OPERATOR, "ada", "crew/1"))
    assert told.WhichOneof("payload") == told.kind
    assert (told.sequence, told.run_sequence, told.run_id) == (77, 5, "run_a")
    assert (told.time.seconds, told.time.nanos) == (1_750_000_000, 123_456_000)
    assert (told.actor.name, told.actor.client, told.run_status) == ("ada", "crew/1", 3)
    assert told.task_id == getattr(event, "task_id", "")
    assert told.attempt == getattr(event, "attempt", 0)


def test_an_event_reads_as_it_always_did() -> None:
    ended = e.AttemptEnded(
        task_id="t",
        attempt=2,
        outcome=w.Outcome.FAILED,
        cause=w.Cause.EXIT,
        message="exited with code 7",
        exit_code=7,
        stdout_bytes=12,
        proof="exit",
        survivors=(m.Survivor(9, "sleep"),),
    )
    recorded = e.Recorded(ended, AT, m.DAEMON, 5, None, w.TaskStatus.RUNNING)
    _, data = encode_event(recorded, RunState(RUN), 77)
    assert data.hex() == (
        "084d10051a0b0880c3bbc206108094ef3a220572756e5f612a017430023a0d617474656d70745f656e646564"
        "5002d2022d080210011a12657869746564207769746820636f6465203720"
        "07380c4a0465786974520908091205736c6565704209080412056372657764"
    )
    told = Event.FromString(data).attempt_ended
    assert (told.outcome, told.cause, told.exit_code, told.signal) == (2, 1, 7, 0)
    assert (told.survivors[0].pid, told.proof, told.HasField("usage")) == (9, "exit", False)


def test_a_workers_events_name_its_attempt() -> None:
    told = encoded(EVENTS[18], m.Actor(w.ActorKind.WORKER, "t"))
    assert told.actor.name == "run_a/t/2"


def test_the_end_of_a_run_tells_what_it_took() -> None:
    finished = encoded(EVENTS[6]).run_finished
    assert (finished.counts.completed, finished.usage.turns, finished.result.text) == (2, 3, "r")


@pytest.mark.parametrize(
    "event",
    [
        e.MessagePosted(task_id="t", attempt=2, role="assistant", text=LONG),
        e.TaskFinished(
            task_id="t",
            status=w.TaskStatus.COMPLETED,
            message=LONG,
            result=m.Result(text=LONG, data_json=f'"{LONG}"'),
            error=m.Failure(reason="x", message=LONG),
        ),
        e.AskOpened(
            m.Ask(
                id="ask_a",
                run_id="run_a",
                task_id="t",
                attempt=1,
                question=LONG,
                detail=LONG,
                options=tuple(m.AskOption(id=f"o{i}", label=LONG) for i in range(16)),
            )
        ),
        e.TasksAdded(
            tuple(
                m.Task(
                    run_id="run_a",
                    id=f"t{i}",
                    position=i,
                    spec=TaskSpec(
                        id=f"t{i}",
                        title="ü" * 100,
                        prompt=LONG,
                        command=("sh", "-c", LONG),
                        cwd="/" + "d" * 3000,
                        depends_on=tuple(f"task-{n:059}" for n in range(9_000)),
                    ),
                )
                for i in range(50)
            )
        ),
        e.RunCreated(
            run=m.Run(
                id="run_a",
                spec=RunSpec(cwd="/w", goal=LONG, labels={f"k{i}": "v" * 1000 for i in range(64)}),
                title=LONG,
            )
        ),
    ],
    ids=lambda event: type(event).__name__,
)
def test_what_is_long_is_cut_so_that_an_event_stays_small(event: e.Event) -> None:
    assert encoded(event).WhichOneof("payload")


def test_data_that_does_not_fit_is_left_out_whole() -> None:
    result = m.Result(text="short", data_json='{"a": "%s"}' % ("x" * 70_000))
    event = e.TaskFinished(task_id="t", status=w.TaskStatus.COMPLETED, result=result)
    told = encoded(event).task_finished.result
    assert (told.text, told.data_json, told.truncated) == ("short", "", True)
