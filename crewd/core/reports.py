"""What a worker says, in one vocabulary: adapters fold their protocols into these."""

from __future__ import annotations

from enum import StrEnum

from crewd.core.model import (
    NO_RESULT,
    Artifact,
    AskOption,
    Capabilities,
    Result,
    Usage,
)
from crewd.core.spec import OnTimeout
from crewd.core.units import Span
from crewd.core.values import record, value
from crewd.core.words import ArtifactKind, AskChannel, AskKind, Cause, Outcome


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
    channel: AskChannel = AskChannel.STDIN


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
class ArtifactGiven:
    """Something to keep: a file named by `path` in the task's directory, or `text` itself.

    It becomes an `ArtifactKept` once its bytes are durable, before anything is committed.
    """

    name: str
    path: str = ""
    text: str = ""
    kind: ArtifactKind = ArtifactKind.FILE
    media_type: str = ""
    description: str = ""


@record
class ArtifactKept:
    artifact: Artifact


@value
class SessionOpened:
    """A new session asks, under this id, for which task it is."""

    ref: str


@value
class SessionRenewed:
    """The session knows nothing of the task before it any more."""


class TurnStop(StrEnum):
    """Why an agent's turn is over."""

    DONE = "done"
    LENGTH = "length"
    """The answer was cut at the model's limit."""
    FAILED = "failed"
    ABORTED = "aborted"


@record
class TurnEnded:
    """An agent's turn is over and nothing follows by itself."""

    stop: TurnStop
    result: Result = NO_RESULT
    """What the agent said last; nothing for FAILED."""
    cause: Cause | None = None
    """For FAILED."""
    message: str = ""
    """The provider's own words, for FAILED."""
    retryable: bool = False


@record
class ResultGiven:
    """The worker handed in. The first one of an attempt that is taken counts."""

    ref: str = ""
    """The worker waits for a reply under this id whether it was taken; empty: it does not."""
    result: Result
    outcome: Outcome
    message: str = ""
    cause: Cause | None = None
    retryable: bool = False


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
    | ArtifactKept
    | SessionOpened
    | SessionRenewed
    | TurnEnded
    | ResultGiven
)

Said = Report | ArtifactGiven
"""What an adapter may find in a worker's output."""


@record
class Verdict:
    """How an attempt ended, by its adapter's rule of evidence."""

    outcome: Outcome
    cause: Cause | None = None
    message: str = ""
    retryable: bool = False
    result: Result | None = None
