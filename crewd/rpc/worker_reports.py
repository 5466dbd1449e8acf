"""What a worker sends by a call, as a report: checked, and refused with all that is wrong.

The limits are those of the `jsonl` protocol, which mends what a call must get right.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from crewd.core.model import AskOption, Result
from crewd.core.reports import Asked, ProgressMade, ResultGiven
from crewd.core.spec import OnTimeout
from crewd.core.units import SECOND
from crewd.core.words import AskChannel, AskKind, Cause, Outcome
from crewd.rpc import enums
from crewd.rpc.checks import Problems
from crewd.rpc.wire import KIB
from crewd.runtime.ids import new_ask_id
from crewd.v1 import worker_service_pb2 as pb

QUESTION_BYTES: Final = 8 * KIB
OPTIONS: Final = 16
LONGEST_WAIT_SECONDS: Final = 60.0
USUAL_WAIT_SECONDS: Final = 30.0
_DETAIL_BYTES: Final = 16 * KIB
_NAME_CHARACTERS: Final = 256
_NAME_BYTES: Final = 256
_DESCRIPTION_BYTES: Final = KIB
_MESSAGE_BYTES: Final = 4 * KIB
_RESULT_BYTES: Final = 64 * KIB
_FULL: Final = 100


def asked(request: pb.CreateAskRequest) -> Asked:
    """Return the question, to be waited for by call."""
    problems = Problems()
    if not request.question.strip():
        problems.add("question", "required")
    ask_id = new_ask_id()
    options = _options(request.options, problems)
    on_timeout = enums.TO_ON_TIMEOUT.get(request.on_timeout)
    _check_choices(request, {option.id for option in options}, problems)
    report = Asked(
        id=ask_id,
        ref=_name("worker_ref", request.worker_ref, problems) or request.request_id or ask_id,
        question=problems.bounded("question", request.question, QUESTION_BYTES),
        kind=problems.known("kind", request.kind, enums.TO_ASK_KIND, AskKind.QUESTION),
        detail=problems.bounded("detail", request.detail, _DETAIL_BYTES),
        options=options,
        allow_text=request.allow_text if request.HasField("allow_text") else True,
        multiple=request.multiple,
        timeout=problems.span("timeout", request.timeout) if request.HasField("timeout") else None,
        on_timeout=on_timeout,
        default_option_id=request.default_option_id,
        channel=AskChannel.CALL,
    )
    problems.refuse()
    return report


def progress(request: pb.ReportProgressRequest) -> ProgressMade:
    problems = Problems()
    percent = request.percent if request.HasField("percent") else None
    if percent is not None and not 0 <= percent <= _FULL:
        problems.add("percent", "must be from 0 to 100")
    if percent is None and not (request.step or request.message):
        problems.add("message", "nothing is told: no percent, no step, no message")
    made = ProgressMade(
        text=problems.bounded("message", request.message, _MESSAGE_BYTES),
        percent=percent,
        step=problems.bounded("step", request.step, _NAME_BYTES),
    )
    problems.refuse()
    return made


def result(request: pb.SubmitResultRequest) -> ResultGiven:
    problems = Problems()
    outcome = _OUTCOMES.get(request.outcome)
    if outcome is None:
        problems.add("outcome", "must be completed or failed")
    text = problems.bounded("text", request.text, _RESULT_BYTES)
    data = _data(request.data_json, problems)
    message = problems.bounded("message", request.message, _MESSAGE_BYTES)
    problems.refuse()
    failed = outcome is Outcome.FAILED
    return ResultGiven(
        result=Result(text=text, data_json=data),
        outcome=Outcome.FAILED if failed else Outcome.COMPLETED,
        message=message or "the worker gave up" if failed else message,
        cause=Cause.REPORTED if failed else None,
        retryable=request.retryable if request.HasField("retryable") else True,
    )


def wait_seconds(request: pb.WaitAskRequest) -> float:
    """Return how long to wait for an ask at most."""
    if not request.HasField("timeout"):
        return USUAL_WAIT_SECONDS
    problems = Problems()
    seconds = problems.span("timeout", request.timeout) / SECOND
    if seconds > LONGEST_WAIT_SECONDS:
        problems.add("timeout", f"must be at most {LONGEST_WAIT_SECONDS:.0f} s; call again then")
    problems.refuse()
    return seconds


_OUTCOMES: Final = {enums.OUTCOME[o]: o for o in (Outcome.COMPLETED, Outcome.FAILED)}


def _check_choices(request: pb.CreateAskRequest, ids: set[str], problems: Problems) -> None:
    if request.HasField("allow_text") and not request.allow_text and not ids:
        problems.add("options", "required when no text is allowed")
    if request.on_timeout and request.on_timeout not in enums.TO_ON_TIMEOUT:
        problems.add("on_timeout", f"this daemon does not know the value {request.on_timeout}")
    default = request.default_option_id
    if default and default not in ids:
        problems.add("default_option_id", f"there is no option {default[:100]!r}")
    by_default = enums.ON_TIMEOUT[OnTimeout.DEFAULT_OPTION]
    if request.on_timeout == by_default and not default:
        problems.add("default_option_id", "required with on_timeout default_option")


def _options(options: Sequence[pb.CreateAskOption], problems: Problems) -> tuple[AskOption, ...]:
    problems.counted("options", len(options), OPTIONS)
    seen: set[str] = set()
    found: list[AskOption] = []
    for index, option in enumerate(options):
        field = f"options[{index}]"
        if not option.id:
            problems.add(f"{field}.id", "required")
        elif option.id in seen:
            problems.add(f"{field}.id", f"a second option {option.id[:100]!r}")
        seen.add(option.id)
        found.append(
            AskOption(
                id=_name(f"{field}.id", option.id, problems),
                label=problems.bounded(f"{field}.label", option.label, _NAME_BYTES) or option.id,
                description=problems.bounded(
                    f"{field}.description", option.description, _DESCRIPTION_BYTES
                ),
            )
        )
    return tuple(found)


def _name(field: str, name: str, problems: Problems) -> str:
    if len(name) > _NAME_CHARACTERS:
        problems.add(field, f"has {len(name)} characters; the most is {_NAME_CHARACTERS}")
    return name


def _data(text: str, problems: Problems) -> str:
    """Check JSON text: what cannot be read by everyone is refused."""
    problems.bounded("data_json", text, _RESULT_BYTES)
    try:
        if text:
            json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        problems.add("data_json", f"is not JSON: {error}")
    return text


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no value of JSON")
