"""Questions and steers taken from upstream; `decision` names crewd's own rule where it differs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from google.protobuf.duration_pb2 import Duration

from crewd.core.errors import CrewdError
from crewd.core.messages import steer_message
from crewd.rpc.calls import TEXT_BYTES, bounded, required
from crewd.rpc.worker_reports import asked
from crewd.v1 import run_task_pb2 as task_pb
from crewd.v1 import worker_service_pb2 as pb
from crewd_client import NotAWorkerError, Worker

Case = Mapping[str, Any]
CASES: Final[list[Case]] = json.loads(
    (Path(__file__).parents[1] / "data" / "vectors" / "ask.json").read_text()
)


def written_out(text: str) -> str:
    """Write out `<8192 chars>`."""
    return "q" * int(text.strip("<").partition(" ")[0]) if text.startswith("<") else text


def ask_params(given: Case) -> Case:
    try:
        asked(_request(given))
    except CrewdError:
        return {"accepted": False}
    return {"accepted": True}


def ask_lifecycle(given: Case) -> Case:
    """Tell how many seconds a person has, or why a worker cannot ask at all."""
    if "env" in given:
        with pytest.raises(NotAWorkerError):
            asyncio.run(Worker.from_environment(given["env"]))
        return {"hang": False, "result": "unavailable notice"}
    if "to" in given:
        known = pb.CreateAskRequest.DESCRIPTOR.fields_by_name
        return {"error": None if {"to", "task_id"}.intersection(known) else "no such field"}
    try:
        timeout = asked(_request({"question": "q", **given})).timeout
    except CrewdError as error:
        return {"effectiveSec": None, "refused": [each.field for each in error.violations]}
    return {"effectiveSec": None if timeout is None else timeout // 1_000_000}


def _request(given: Case) -> pb.CreateAskRequest:
    labels = enumerate(given.get("options", ()))
    request = pb.CreateAskRequest(
        question=written_out(given["question"]),
        options=[pb.CreateAskOption(id=str(number), label=label) for number, label in labels],
    )
    if "timeoutSec" in given:
        request.timeout.CopyFrom(Duration(seconds=given["timeoutSec"]))
    return request


def steer_sanitize(given: Case) -> Case:
    text = given.get("message", "")
    try:
        request = task_pb.SteerTaskRequest(
            text=written_out(text) if isinstance(text, str) else text
        )
        required("text", request.text)
    except (CrewdError, TypeError):
        return {"valid": False, "reason": "missing-or-empty-message"}
    said = json.loads(steer_message("s", bounded("text", request.text, TEXT_BYTES)))["text"]
    return {"valid": True, "message": text if said == written_out(text) else said}


AREAS: Final[Mapping[str, Callable[[Case], Case]]] = {
    "ask_params": ask_params,
    "ask_lifecycle": ask_lifecycle,
    "steer_sanitize": steer_sanitize,
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['area']}: {case['case']}")
def test_a_case_comes_out_as_expected(case: Case) -> None:
    found = AREAS[case["area"]](case["input"])

    assert {key: found.get(key) for key in case["expect"]} == case["expect"]
