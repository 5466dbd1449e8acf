"""The core's enumerations and the contract's, value by value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from crewd.core import spec as s
from crewd.core import words as w
from crewd.core.stimuli import Resolution
from crewd.v1 import (
    actor_pb2,
    artifact_pb2,
    ask_pb2,
    attempt_pb2,
    failure_pb2,
    run_pb2,
    spec_pb2,
    task_pb2,
)
from crewd.v1 import run_task_pb2 as run_task

RUN_STATUS: Final = {x: run_pb2.RunStatus.Value(f"RUN_STATUS_{x.name}") for x in w.RunStatus}
TASK_STATUS: Final = {x: task_pb2.TaskStatus.Value(f"TASK_STATUS_{x.name}") for x in w.TaskStatus}
ATTEMPT_STATUS: Final = {
    x: attempt_pb2.AttemptStatus.Value(f"ATTEMPT_STATUS_{x.name}") for x in w.AttemptStatus
}
OUTCOME: Final = {x: attempt_pb2.Outcome.Value(f"OUTCOME_{x.name}") for x in w.Outcome}
CAUSE: Final = {x: failure_pb2.Cause.Value(f"CAUSE_{x.name}") for x in w.Cause}
ASK_STATUS: Final = {x: ask_pb2.AskStatus.Value(f"ASK_STATUS_{x.name}") for x in w.AskStatus}
ASK_KIND: Final = {x: ask_pb2.AskKind.Value(f"ASK_KIND_{x.name}") for x in w.AskKind}
ON_TIMEOUT: Final = {x: ask_pb2.OnTimeout.Value(f"ON_TIMEOUT_{x.name}") for x in s.OnTimeout}
FAILURE_MODE: Final = {
    x: spec_pb2.FailureMode.Value(f"FAILURE_MODE_{x.name}") for x in s.FailureMode
}
ON_NEEDS_ATTENTION: Final = {
    x: spec_pb2.OnNeedsAttention.Value(f"ON_NEEDS_ATTENTION_{x.name}") for x in s.OnNeedsAttention
}
ARTIFACT_KIND: Final = {
    x: artifact_pb2.ArtifactKind.Value(f"ARTIFACT_KIND_{x.name}") for x in w.ArtifactKind
}
DELIVERY: Final = {x: ask_pb2.Delivery.Value(f"DELIVERY_{x.name}") for x in w.Delivery}
ACTOR_KIND: Final = {x: actor_pb2.ActorKind.Value(f"ACTOR_KIND_{x.name}") for x in w.ActorKind}
STEER_STATUS: Final[Mapping[str, task_pb2.SteerStatus.ValueType]] = {
    name.removeprefix("STEER_STATUS_").lower(): number
    for name, number in task_pb2.SteerStatus.items()
}
HOLD_REASON: Final[Mapping[str, task_pb2.HoldReason.ValueType]] = {
    name.removeprefix("HOLD_REASON_").lower(): number
    for name, number in task_pb2.HoldReason.items()
}

TO_RUN_STATUS: Final[Mapping[int, w.RunStatus]] = {number: x for x, number in RUN_STATUS.items()}
TO_ASK_STATUS: Final[Mapping[int, w.AskStatus]] = {number: x for x, number in ASK_STATUS.items()}
TO_ASK_KIND: Final[Mapping[int, w.AskKind]] = {number: x for x, number in ASK_KIND.items()}
TO_ARTIFACT_KIND: Final[Mapping[int, w.ArtifactKind]] = {
    number: x for x, number in ARTIFACT_KIND.items()
}
TO_ON_TIMEOUT: Final[Mapping[int, s.OnTimeout]] = {number: x for x, number in ON_TIMEOUT.items()}
TO_FAILURE_MODE: Final[Mapping[int, s.FailureMode]] = {
    number: x for x, number in FAILURE_MODE.items()
}
TO_ON_NEEDS_ATTENTION: Final[Mapping[int, s.OnNeedsAttention]] = {
    number: x for x, number in ON_NEEDS_ATTENTION.items()
}
TO_RESOLUTION: Final[Mapping[int, Resolution]] = {
    run_task.Resolution.Value(f"RESOLUTION_{x.name}"): x for x in Resolution
}
