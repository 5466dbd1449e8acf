"""What a worker says, in one vocabulary: adapters fold their protocols into these."""

from __future__ import annotations

from dataclasses import dataclass

from crewd.core.model import AskKind, AskOption, Capabilities, Cause, Outcome, Result, Usage
from crewd.core.spec import OnTimeout
from crewd.core.units import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    name: str = ""
    version: str = ""
    model: str = ""
    session_id: str = ""
    capabilities: Capabilities


@dataclass(frozen=True, slots=True)
class Message:
    text: str
    role: str = "assistant"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressMade:
    text: str = ""
    percent: float | None = None
    step: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBegan:
    tool_id: str
    name: str
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDone:
    tool_id: str
    is_error: bool = False
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    usage: Usage
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True)
class AskWithdrawn:
    ref: str


@dataclass(frozen=True, slots=True)
class SteerSeen:
    steer_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderTrouble:
    cause: Cause
    message: str
    retry_after: Span | None = None


@dataclass(frozen=True, slots=True)
class Warned:
    """Something a person should know that ends nothing."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How an attempt ended, by its adapter's rule of evidence."""

    outcome: Outcome
    cause: Cause | None = None
    message: str = ""
    retryable: bool = False
    result: Result | None = None
