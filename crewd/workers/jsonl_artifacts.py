"""What a jsonl worker hands in to be kept: a file of its directory, or a text."""

from __future__ import annotations

import re
from typing import Final

from crewd.core.reports import ArtifactGiven, Warned
from crewd.core.words import ArtifactKind
from crewd.workers.jsonl_values import Fields, choice_in, text_in
from crewd.workers.text import is_over

NAME_BYTES: Final = 200
PATH_BYTES: Final = 4096
OWN: Final = frozenset({ArtifactKind.PROMPT, ArtifactKind.TRANSCRIPT})
"""Kinds that only crewd itself makes."""
DESCRIPTION_BYTES: Final = 1024
CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
MEDIA_TYPE: Final = re.compile(r"[\w.+-]{1,64}/[\w.+-]{1,64}(?:\s*;[ -~]{1,64})?", re.ASCII)


def artifact(fields: Fields) -> list[ArtifactGiven | Warned]:
    """Return what is to be kept, with warnings for what cannot be meant."""
    problem = _problem(fields)
    if problem:
        return [Warned("artifact_invalid", f"an artifact was not kept: {problem}")]
    name, path, text = fields["name"], fields.get("path"), fields.get("text")
    warnings: list[Warned] = []
    kind = choice_in(fields, "kind", ArtifactKind)
    if fields.get("kind") is not None and (kind is None or kind in OWN):
        warnings.append(_odd(f"artifact {name} is kept as a file: its kind is none it can have"))
        kind = None
    media_type = text_in(fields, "media_type", PATH_BYTES)
    if media_type and not MEDIA_TYPE.fullmatch(media_type):
        warnings.append(_odd(f"artifact {name} is kept without its media type, which is none"))
        media_type = ""
    given = ArtifactGiven(
        name=str(name),
        path=path if isinstance(path, str) else "",
        text=text if isinstance(text, str) else "",
        kind=kind or ArtifactKind.FILE,
        media_type=media_type,
        description=text_in(fields, "description", DESCRIPTION_BYTES),
    )
    return [*warnings, given]


def name_problem(name: str) -> str:
    """Say why whoever writes the artifact below a folder might write it elsewhere, or nowhere."""
    if "\\" in name:
        return "it has a backslash; part folders with /"
    if name.startswith("/"):
        return "it begins with /; leave that out"
    parts = name.split("/")
    if ".." in parts:
        return "a part of it is `..`; leave that out"
    return "a part of it is empty; name it like out/report.md" if "" in parts else ""


def _odd(message: str) -> Warned:
    return Warned("artifact_odd", message)


def _problem(fields: Fields) -> str:
    name, path, text = fields.get("name"), fields.get("path"), fields.get("text")
    if problem := _unfit(name):
        return problem
    if (path is None) == (text is None):
        return f"{name} needs either a path or a text"
    if text is not None:
        return "" if isinstance(text, str) else f"the text of {name} is none"
    if not isinstance(path, str) or not path or is_over(path, PATH_BYTES):
        return f"the path of {name} is none, or has over {PATH_BYTES} bytes"
    return ""


def _unfit(name: object) -> str:
    if not isinstance(name, str) or not name.strip():
        return "it has no name"
    if is_over(name, NAME_BYTES) or CONTROL.search(name):
        return f"its name has over {NAME_BYTES} bytes, or control characters"
    problem = name_problem(name)
    return f"its name {name!r}: {problem}" if problem else ""
