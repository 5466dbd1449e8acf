"""The core and the contract call the same things by the same names."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import get_args

import pytest
from google.protobuf.descriptor import EnumDescriptor

from crewd.core import events, spec, stimuli, words
from crewd.core.errors import Reason
from crewd.v1 import (
    actor_pb2,
    artifact_pb2,
    ask_pb2,
    attempt_pb2,
    error_reason_pb2,
    event_pb2,
    failure_pb2,
    run_pb2,
    run_task_pb2,
    spec_pb2,
    task_pb2,
)

ENUMS: list[tuple[type[StrEnum], EnumDescriptor]] = [
    (words.ActorKind, actor_pb2.ActorKind.DESCRIPTOR),
    (words.ArtifactKind, artifact_pb2.ArtifactKind.DESCRIPTOR),
    (words.AskKind, ask_pb2.AskKind.DESCRIPTOR),
    (words.AskStatus, ask_pb2.AskStatus.DESCRIPTOR),
    (words.AttemptStatus, attempt_pb2.AttemptStatus.DESCRIPTOR),
    (words.Cause, failure_pb2.Cause.DESCRIPTOR),
    (words.Delivery, ask_pb2.Delivery.DESCRIPTOR),
    (words.Outcome, attempt_pb2.Outcome.DESCRIPTOR),
    (words.RunStatus, run_pb2.RunStatus.DESCRIPTOR),
    (words.TaskStatus, task_pb2.TaskStatus.DESCRIPTOR),
    (spec.FailureMode, spec_pb2.FailureMode.DESCRIPTOR),
    (spec.OnNeedsAttention, spec_pb2.OnNeedsAttention.DESCRIPTOR),
    (spec.OnTimeout, ask_pb2.OnTimeout.DESCRIPTOR),
    (stimuli.Resolution, run_task_pb2.Resolution.DESCRIPTOR),
]


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def values(enum: EnumDescriptor) -> list[str]:
    prefix = snake(enum.name).upper()
    return [value.name.removeprefix(f"{prefix}_") for value in enum.values]


@pytest.mark.parametrize(("core", "contract"), ENUMS, ids=lambda e: getattr(e, "__name__", ""))
def test_enum_has_the_same_values(core: type[StrEnum], contract: EnumDescriptor) -> None:
    assert ["UNSPECIFIED", *core.__members__] == values(contract)
    assert [member.upper() for member in core] == list(core.__members__)


def test_every_event_of_the_core_has_a_payload_of_its_name() -> None:
    payload = event_pb2.Event.DESCRIPTOR.oneofs_by_name["payload"]
    kinds = {field.name: field.message_type for field in payload.fields}

    for event in get_args(events.Event):
        message = kinds[snake(event.__name__)]
        assert message is not None
        assert message.name == event.__name__


def test_payloads_are_numbered_from_20_and_the_envelope_below() -> None:
    fields = event_pb2.Event.DESCRIPTOR.fields
    assert all((field.number >= 20) == (field.containing_oneof is not None) for field in fields)


def test_every_reason_of_the_core_is_in_the_contract() -> None:
    contract = values(error_reason_pb2.ErrorReason.DESCRIPTOR)
    assert set(Reason.__members__) <= set(contract)
