"""Questions taken from upstream; `decision` names crewd's own rule where it differs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from google.protobuf.duration_pb2 import Duration

from crewd.core.errors import CrewdError
from crewd.rpc.worker_reports import asked
from crewd.v1 import worker_service_pb2 as pb

CASES: Final[list[Mapping[str, Any]]] = json.loads(
    (Path(__file__).parents[1] / "data" / "vectors" / "ask.json").read_text()
)


def question(text: str) -> str:
    """Write out `<8192 chars>`."""
    return "q" * int(text.strip("<").partition(" ")[0]) if text.startswith("<") else text


def accepted(given: Mapping[str, Any]) -> bool:
    labels = enumerate(given.get("options", ()))
    request = pb.CreateAskRequest(
        question=question(given["question"]),
        options=[pb.CreateAskOption(id=str(number), label=label) for number, label in labels],
    )
    if "timeoutSec" in given:
        request.timeout.CopyFrom(Duration(seconds=given["timeoutSec"]))
    try:
        asked(request)
    except CrewdError:
        return False
    return True


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_a_question_is_taken_or_refused_as_decided(case: Mapping[str, Any]) -> None:
    assert accepted(case["input"]) is case["expect"]["accepted"]
