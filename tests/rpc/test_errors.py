from __future__ import annotations

import pytest
from google.rpc import (  # pyright: ignore[reportMissingTypeStubs]
    error_details_pb2,
    status_pb2,
)
from grpc import StatusCode

from crewd.core.errors import CrewdError, Reason, Violation
from crewd.rpc.errors import CODES, DETAILS_BYTES, AskSettledError, refusal
from crewd.v1 import ask_pb2
from crewd.v1.error_reason_pb2 import ErrorReason

LATER = {"UNSPECIFIED", "RUN_READ_ONLY"}
"""In the contract, and not given by anything there is."""


def test_every_reason_has_a_code_and_a_name_in_the_contract() -> None:
    names = {name.removeprefix("ERROR_REASON_") for name in ErrorReason.keys()}  # noqa: SIM118
    assert set(CODES) == set(Reason)
    assert {reason.value for reason in Reason} == names - LATER


@pytest.mark.parametrize("reason", [Reason.DRAINING, Reason.RECOVERING])
def test_only_what_may_be_tried_again_says_when(reason: Reason) -> None:
    retry = error_details_pb2.RetryInfo()
    status = status_pb2.Status.FromString(refusal(CrewdError(reason, "later")).details)
    assert CODES[reason] is StatusCode.UNAVAILABLE
    assert [d.Unpack(retry) for d in status.details] == [False, True]
    assert retry.retry_delay.seconds > 0


def test_details_stay_small_and_count_what_they_leave_out() -> None:
    violations = [Violation(f"tasks[{i}].command", "no such program" * 9) for i in range(10_000)]
    error = CrewdError(
        Reason.WORKER_NOT_FOUND, "é" * 9000, violations=violations, path="/x:" * 9000
    )
    code, message, details = refusal(error)
    bad = error_details_pb2.BadRequest()
    status = status_pb2.Status.FromString(details)
    assert code is StatusCode.FAILED_PRECONDITION
    assert len(details) <= DETAILS_BYTES
    assert len(message.encode()) <= 600
    assert status.details[1].Unpack(bad)
    assert bad.field_violations[-1].description.endswith("more")


def test_the_winning_ask_is_in_the_details_however_long_its_texts_are() -> None:
    options = [ask_pb2.AskOption(id=f"o{i}", label="l" * 900) for i in range(16)]
    ask = ask_pb2.Ask(
        id="ask_1", status=ask_pb2.ASK_STATUS_ANSWERED, question="q" * 8192, options=options
    )
    ask.answer.option_ids.append("o3")
    details = refusal(AskSettledError(ask, "too late")).details
    told = ask_pb2.Ask()
    assert len(details) <= DETAILS_BYTES
    assert status_pb2.Status.FromString(details).details[1].Unpack(told)
    assert (told.id, list(told.answer.option_ids)) == ("ask_1", ["o3"])
