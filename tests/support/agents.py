"""What an agent may say next, in whatever order a program and its model think of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from crewd.core.model import Result, Usage
from crewd.core.reports import (
    Message,
    Report,
    ResultGiven,
    SessionOpened,
    SessionRenewed,
    ToolBegan,
    ToolDone,
    TurnEnded,
    TurnStop,
    Used,
)
from crewd.core.words import Cause, Outcome
from tests.support.fake_host import Job

_SAID: Final = Result(text="all of it is done")
_COUNTED: Final = Result(text="counted them", data_json='{"count": 3}')
_DATA: Final = ResultGiven(ref="r", result=_COUNTED, outcome=Outcome.COMPLETED)
_DONE: Final = TurnEnded(stop=TurnStop.DONE, result=_SAID)
_WORDS: Final[Mapping[str, tuple[Report, ...]]] = {
    "done": (_DONE,),
    "data and done": (_DATA, _DONE),
    "data": (_DATA,),
    "bad data": (ResultGiven(ref="r", result=_SAID, outcome=Outcome.COMPLETED),),
    "cannot": (ResultGiven(ref="r", result=_SAID, outcome=Outcome.FAILED, retryable=True),),
    "empty": (TurnEnded(stop=TurnStop.DONE),),
    "cut": (TurnEnded(stop=TurnStop.LENGTH, result=_SAID),),
    "failed": (TurnEnded(stop=TurnStop.FAILED, cause=Cause.TRANSIENT, retryable=True),),
    "aborted": (TurnEnded(stop=TurnStop.ABORTED),),
    "text": (Message("working"),),
    "use": (Used(usage=Usage(input_tokens=10, turns=1)),),
    "tool": (ToolBegan(tool_id="t", name="bash"),),
    "tool done": (ToolDone(tool_id="t"),),
}
_RENEWALS: Final[Mapping[str, tuple[Report, ...]]] = {
    "opened and renewed": (SessionOpened("d1"), SessionRenewed()),
    "opened": (SessionOpened("d1"),),
    "renewed": (SessionRenewed(),),
}
DEEDS: Final = (*_WORDS, "done", "done", "done", "data and done")
RENEWALS: Final = (*_RENEWALS, "opened and renewed", "opened and renewed")


def words_of(job: Job, deed: str) -> tuple[Report, ...]:
    """Say it; an agent whose turn is over can only tell that once more."""
    words = _WORDS[deed]
    ends = tuple(word for word in words if isinstance(word, TurnEnded))
    if job.over:
        return ends
    job.over = bool(ends)
    return words


def renewal_of(deed: str) -> tuple[Report, ...]:
    return _RENEWALS[deed]
