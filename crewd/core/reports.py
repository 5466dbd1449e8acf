"""What a worker says, in one vocabulary: adapters fold their protocols into these."""

from __future__ import annotations

from crewd.core.model import AskKind, AskOption, Capabilities, Cause, Outcome, Result, Usage
from crewd.core.spec import OnTimeout
from crewd.core.units import Span
from crewd.core.values import record, value


@record
class Hello:
    name: str = ""
    version: str = ""
    model: str = ""
    session_id: str = ""
    capabilities: Capabilities


@value
class Message:
    text: str
    role: str = "assistant"


@record
class ProgressMade:
    text: str = ""
    percent: float | None = None
    step: str = ""


@record
class ToolBegan:
    tool_id: str
    name: str
    title: str = ""


@record
class ToolDone:
    tool_id: str
    is_error: bool = False
    detail: str = ""


@record
class Used:
    usage: Usage
    model: str = ""


@record
class Asked:
    """A question. `ref` is the worker's own id for it; `id` the one crewd drew."""

    id: str
    ref: str
    question: str
    kind: AskKind = AskKind.QUESTION
    detail: str = ""
    options: tuple[AskOption, ...] = ()
    allow_text: bool = True
    multiple: bool = False
    timeout: Span | None = None
    on_timeout: OnTimeout | None = None
    default_option_id: str = ""


@value
class AskWithdrawn:
    ref: str


@value
class SteerSeen:
    steer_id: str


@record
class ProviderTrouble:
    cause: Cause
    message: str
    retry_after: Span | None = None


@value
class Warned:
    """Something a person should know that ends nothing."""

    code: str
    message: str


@record
class ResultGiven:
    """The worker handed in. The first one of an attempt counts."""

    result: Result
    outcome: Outcome
    message: str = ""
    cause: Cause | None = None
    retryable: bool = True


Report = (
    Hello
    | Message
    | ProgressMade
    | ToolBegan
    | ToolDone
    | Used
    | Asked
    | AskWithdrawn
    | SteerSeen
    | ProviderTrouble
    | Warned
    | ResultGiven
)


@record
class Verdict:
    """How an attempt ended, by its adapter's rule of evidence."""

    outcome: Outcome
    cause: Cause | None = None
    message: str = ""
    retryable: bool = False
    result: Result | None = None
