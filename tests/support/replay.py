"""A run as its events tell it, beside the same run as its rows have it."""

from __future__ import annotations

from collections import Counter

from crewd_client.v1.ask_pb2 import ASK_STATUS_OPEN
from crewd_client.v1.attempt_pb2 import ATTEMPT_STATUS_ENDED
from crewd_client.v1.event_pb2 import Event
from crewd_client.v1.run_pb2 import Run
from crewd_client.v1.task_pb2 import TASK_STATUS_QUEUED, Task, TaskStatus
from tests.support.desk import Desk


class Told:
    """What a reader who has nothing but the events knows."""

    def __init__(self, events: list[Event]) -> None:
        self.run_status = 0
        self.tasks: dict[str, int] = {}
        self.attempts: dict[tuple[str, int], tuple[int, int, int, int]] = {}
        self.asks: dict[str, int] = {}
        self.tokens = 0
        self.sequence = 0
        self.run_sequence = 0
        for event in events:
            self._take(event)

    def _take(self, event: Event) -> None:
        self.sequence, self.run_sequence = event.sequence, event.run_sequence
        self.run_status = event.run_status or self.run_status
        if event.task_status:
            self.tasks[event.task_id] = event.task_status
        match event.kind:
            case "tasks_added":
                added = dict.fromkeys((t.id for t in event.tasks_added.tasks), TASK_STATUS_QUEUED)
                self.tasks = {**added, **self.tasks}
            case "attempt_ended":
                end = event.attempt_ended
                told = (end.outcome, end.cause, end.stdout_bytes, end.stderr_bytes)
                self.attempts[event.task_id, event.attempt] = told
            case "usage_reported":
                self.tokens += event.usage_reported.delta.input_tokens
            case "ask_opened":
                self.asks[event.ask_opened.ask.id] = ASK_STATUS_OPEN
            case "ask_settled":
                self.asks[event.ask_settled.ask_id] = event.ask_settled.outcome
            case _:
                pass


async def expect_rows_as_told(desk: Desk, run_id: str) -> None:
    """Assert that the rows of a run that has ended are what its events add up to."""
    told = Told(await desk.events(run_id))
    run = await desk.run(run_id)
    tasks = [await desk.task(run_id, task_id) for task_id in await desk.tasks(run_id)]
    assert told.run_status == run.status
    assert (told.sequence, told.run_sequence) == (run.last_sequence, run.last_run_sequence)
    assert told.tasks == {task.id: task.status for task in tasks}
    assert told.tokens == run.usage.input_tokens == sum(t.usage.input_tokens for t in tasks)
    assert told.attempts == _attempts(tasks)
    assert told.asks == {ask.id: ask.status for ask in await desk.asks(run_id)}
    assert run.open_ask_count == list(told.asks.values()).count(ASK_STATUS_OPEN)
    assert _counts(run) == Counter(task.status for task in tasks)


def _attempts(tasks: list[Task]) -> dict[tuple[str, int], tuple[int, int, int, int]]:
    attempts = [attempt for task in tasks for attempt in task.attempts]
    assert {attempt.status for attempt in attempts} <= {ATTEMPT_STATUS_ENDED}
    return {
        (a.task_id, a.number): (a.outcome, a.cause, a.stdout_bytes, a.stderr_bytes)
        for a in attempts
    }


def _counts(run: Run) -> Counter[int]:
    prefix = "TASK_STATUS_"
    names = {name: value for name, value in TaskStatus.items() if value}
    counts = {v: getattr(run.task_counts, n.removeprefix(prefix).lower()) for n, v in names.items()}
    return Counter({value: count for value, count in counts.items() if count})
