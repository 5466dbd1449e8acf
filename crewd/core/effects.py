"""What is to be done once a decision is committed. All of it may be done again after a crash."""

from __future__ import annotations

from collections.abc import Mapping

from crewd.core.events import Recorded
from crewd.core.model import Outbox
from crewd.core.spec import AgentSpec
from crewd.core.values import record, value
from crewd.core.words import ArtifactKind


@record
class StartWorker:
    """Effect: tell the host to start it. Everything it needs, as values."""

    task_id: str
    attempt: int
    epoch: str
    adapter: str
    agent: AgentSpec | None
    model: str
    executable: str
    argv: tuple[str, ...]
    cwd: str
    path: str
    env: Mapping[str, str]
    env_from: tuple[str, ...]
    stdin: bool
    keep_children: bool


@record
class PassWorker:
    """Effect: have the process of an attempt that has done go on as another one's."""

    giver_task_id: str
    giver_attempt: int
    task_id: str
    attempt: int
    epoch: str


@value
class WriteWorker:
    """Effect: hand this message to the worker's stdin."""

    row: Outbox


@record
class CloseStdin:
    """Effect: nothing more will be written."""

    task_id: str
    attempt: int


@record
class StopWorker:
    """Effect: the host stops the whole tree: TERM, grace, KILL."""

    task_id: str
    attempt: int
    grace_ms: int


@record
class ForgetWorker:
    """Effect: the attempt is settled and committed; the host may drop what it kept of it."""

    task_id: str
    attempt: int


@record
class KeepText:
    """Effect: keep this text, redacted, as an artifact; `TextKept` tells when it is."""

    task_id: str
    attempt: int
    name: str
    kind: ArtifactKind
    media_type: str
    text: str
    description: str = ""
    truncated: bool = False


@value
class KeepInOrder:
    """Effect: keep these texts one after the other, so that with the last one all are kept."""

    texts: tuple[KeepText, ...]


@value
class Continue:
    """Effect: send `GoOn` to this run."""


Effect = (
    StartWorker
    | PassWorker
    | WriteWorker
    | CloseStdin
    | StopWorker
    | ForgetWorker
    | KeepText
    | KeepInOrder
    | Continue
)


@value
class Decision:
    """What follows from one stimulus: facts already applied to the state, then effects."""

    events: tuple[Recorded, ...] = ()
    effects: tuple[Effect, ...] = ()
