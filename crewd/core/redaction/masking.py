"""What a worker said and left behind, without its secrets, before anyone else sees it.

A worker's own ids of questions and notes stay as they are: by them it knows what an answer is for.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TypeVar, cast

from crewd.core import reports as r
from crewd.core.model import AskOption, Result
from crewd.core.redaction.documents import redact_json
from crewd.core.redaction.known import NOTHING_KNOWN, KnownSecrets
from crewd.core.redaction.redactor import redact
from crewd.core.redaction.spans import MASK

_Said = r.Report | r.ArtifactGiven | r.Verdict
S = TypeVar("S", bound=_Said)


class Masking:
    """Masks the secrets of one attempt: those that can be told, and those that are known."""

    def __init__(self, known: KnownSecrets = NOTHING_KNOWN) -> None:
        self.known = known

    def text(self, text: str) -> str:
        return redact(self.known.mask_text(text)) if text else text

    def data(self, data_json: str) -> str:
        """Mask JSON text. What is known to be secret may stand there as a number, too."""
        masked = self.text(data_json)
        if masked == data_json or _is_json(masked):
            return masked
        masked = redact_json(data_json, self.text)
        return json.dumps(self._without_numbers(json.loads(masked)), ensure_ascii=False)

    def strings(self, state_json: str) -> str:
        """Mask what the strings in it say, whatever they are called."""
        return redact_json(state_json, self.text, keys=False)

    def result(self, result: Result) -> Result:
        return replace(result, text=self.text(result.text), data_json=self.data(result.data_json))

    def report(self, said: S) -> S:
        return cast("S", self._masked(said))

    def _masked(self, said: _Said) -> _Said:  # noqa: C901, PLR0911, PLR0912 - a table
        text = self.text
        match said:
            case r.Hello(name=name, version=version, model=model, session_id=session):
                return replace(
                    said,
                    name=text(name),
                    version=text(version),
                    model=text(model),
                    session_id=text(session),
                )
            case r.Message(text=message):
                return replace(said, text=text(message))
            case r.ProgressMade(text=message, step=step):
                return replace(said, text=text(message), step=text(step))
            case r.ToolBegan(tool_id=tool, name=name, title=title):
                return replace(said, tool_id=text(tool), name=text(name), title=text(title))
            case r.ToolDone(tool_id=tool, detail=detail):
                return replace(said, tool_id=text(tool), detail=text(detail))
            case r.Used(model=model):
                return replace(said, model=text(model))
            case r.Asked():
                return self._question(said)
            case r.ProviderTrouble(message=message) | r.Warned(message=message):
                return replace(said, message=text(message))
            case r.ArtifactGiven():
                description = text(said.description)
                return replace(said, text=text(said.text), description=description)
            case r.ArtifactKept(artifact=row):
                name, path = text(row.name), text(row.source_path)
                description = text(row.description)
                row = replace(row, name=name, source_path=path, description=description)
                return replace(said, artifact=row)
            case r.TurnEnded() | r.ResultGiven():
                return replace(said, result=self.result(said.result), message=text(said.message))
            case r.Verdict(result=result):
                shown = None if result is None else self.result(result)
                return replace(said, result=shown, message=text(said.message))
            case r.AskWithdrawn() | r.SteerSeen() | r.SessionOpened() | r.SessionRenewed():
                return said

    def _question(self, asked: r.Asked) -> r.Asked:
        """Mask the options, too. An id that was made of a secret label becomes a number."""
        options = [self._option(option, str(n)) for n, option in enumerate(asked.options, 1)]
        ids = {old.id: new.id for old, new in zip(asked.options, options, strict=True)}
        return replace(
            asked,
            question=self.text(asked.question),
            detail=self.text(asked.detail),
            options=tuple(options),
            default_option_id=ids.get(asked.default_option_id, asked.default_option_id),
        )

    def _option(self, option: AskOption, number: str) -> AskOption:
        return replace(
            option,
            id=option.id if self.text(option.id) == option.id else number,
            label=self.text(option.label),
            description=self.text(option.description),
        )

    def _without_numbers(self, value: object) -> object:
        """Mask numbers in what JSON was read as: they are no strings, so no rule sees them."""
        match value:
            case dict():
                fields = cast("dict[str, object]", value)
                return {key: self._without_numbers(each) for key, each in fields.items()}
            case list():
                return [self._without_numbers(each) for each in cast("list[object]", value)]
            case int() | float():
                written = json.dumps(value)
                return value if self.known.mask_text(written) == written else MASK
            case _:
                return value


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
