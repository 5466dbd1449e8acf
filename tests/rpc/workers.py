"""Workers as the edge meets them: their tokens, and what they call."""

from __future__ import annotations

from crewd.core.events import AttemptEnded, AttemptStarting, RunStarted
from crewd.core.words import Outcome
from crewd.runtime.jobs import JobKey
from crewd.v1 import ask_pb2, ask_service_pb2
from crewd.v1 import worker_service_pb2 as pb
from tests.rpc.world import AUTH, TASK_TOKENS, World

RUN = "run_aaaaaaaaaa"
JOB = JobKey(RUN, "build", 1)
Metadata = tuple[tuple[str, str], ...]


def bearing(token: str) -> Metadata:
    return (("authorization", f"Bearer {token}"), ("x-crewd-client", "kit/1"))


WORKER = bearing(TASK_TOKENS.issue(JOB))
OTHER = bearing(TASK_TOKENS.issue(JobKey(RUN, "other", 1)))


async def working(world: World) -> None:
    """Have two tasks whose first attempts live."""
    await world.create(RUN, "build", "other")
    await world.supervisor.record(RUN, RunStarted())
    for task_id in ("build", "other"):
        await started(world, task_id)


async def started(world: World, task_id: str, attempt: int = 1) -> None:
    starting = AttemptStarting(task_id=task_id, attempt=attempt, adapter="command", epoch="e")
    await world.supervisor.record(RUN, starting)


async def ended(world: World) -> None:
    over = AttemptEnded(task_id="build", attempt=1, outcome=Outcome.FAILED)
    await world.supervisor.record(RUN, over)


def a_question(**fields: object) -> pb.CreateAskRequest:
    given = {"question": "Go on?", "request_id": "q1", **fields}
    return pb.CreateAskRequest(**given)  # type: ignore[arg-type]


async def asked(world: World, metadata: Metadata = WORKER, **fields: object) -> ask_pb2.Ask:
    return (await world.workers.CreateAsk(a_question(**fields), metadata=metadata)).ask


def a_wait(ask_id: str, milliseconds: int = 30_000) -> pb.WaitAskRequest:
    wait = pb.WaitAskRequest(ask_id=ask_id)
    wait.timeout.FromMilliseconds(milliseconds)
    return wait


async def answer(world: World, ask_id: str, text: str = "yes") -> None:
    request = ask_service_pb2.AnswerAskRequest(ask_id=ask_id, text=text)
    await world.asks.AnswerAsk(request, metadata=AUTH)
