"""Skills: a folder with a SKILL.md, and the skills that go with a role's name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from crewd.catalog import frontmatter
from crewd.catalog.fields import Fields, is_skill_name
from crewd.catalog.files import Found, findings_of, spelled
from crewd.catalog.findings import shown
from crewd.catalog.nodes import Entries
from crewd.catalog.tools import role_key
from crewd.catalog.values import Problem, Skill, Source

FILE: Final = "SKILL.md"
_NAME_CHARACTERS: Final = 64
_DESCRIPTION_CHARACTERS: Final = 1024
_KEBAB: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_VERSION: Final = re.compile(r"\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?")
_NO_EFFECT: Final[frozenset[str]] = frozenset(
    {
        *("disable_model_invocation", "user_invocable", "argument_hint", "model", "context"),
        *("agent", "hooks", "when_to_use", "paths", "effort"),
    }
)
_DEFAULTS: Final[Mapping[str, tuple[str, ...]]] = {
    "explorer": ("read-only-explorer", "context-artifact-hygiene"),
    "analyst": ("read-only-explorer", "requirements-to-task-packet"),
    "planner": ("delegation-patterns", "requirements-to-task-packet"),
    "critic": ("read-only-explorer", "multi-perspective-review"),
    "reviewer": ("read-only-explorer", "multi-perspective-review"),
    "executor": ("state-mutation-locking", "safe-bash", "verification-before-done"),
    "security-reviewer": ("secure-agent-orchestration-review", "ownership-session-security"),
    "test-engineer": ("verification-before-done", "safe-bash"),
    "verifier": ("verification-before-done", "runtime-state-reader"),
    "writer": ("context-artifact-hygiene", "verification-before-done"),
}


def role_defaults(role: str) -> tuple[str, ...]:
    """Return the skills that a worker in this role is given unless its file says otherwise."""
    return _DEFAULTS.get(role_key(role), ())


def parse(found: Found) -> tuple[Skill | None, list[Problem]]:
    """Return the skill, None if it cannot be used, and what is wrong."""
    findings = findings_of(found)
    document = frontmatter.read(found.text, findings)
    fields = Fields(document.head, findings)
    folder = found.path.parent
    if document.head is None and not findings.failed:
        fix = "begin the file with `---`, `name: …`, `description: …`, `---`"
        findings.warn(1, "it has no front matter; the skill is named after its folder", fix)
    name = _name(fields, folder.name, has_head=document.head is not None)
    description = fields.text("description")
    if document.head is not None:
        _check_description(fields, description)
    _check_rest(fields)
    fields.finish(_NO_EFFECT)
    if findings.failed:
        return None, findings.problems
    builtin = found.place.source is Source.BUILTIN
    skill = Skill(
        name=name,
        description=description,
        source=found.place.source,
        file=findings.file,
        folder="" if builtin else spelled(folder),
        text=document.body.strip(),
    )
    return skill, findings.problems


def _name(fields: Fields, folder: str, *, has_head: bool) -> str:
    name = fields.text("name")
    line = fields.line("name")
    if name:
        if not _KEBAB.fullmatch(name) or len(name) > _NAME_CHARACTERS:
            fix = f"use lower-case words joined by -, at most {_NAME_CHARACTERS} characters"
            fields.findings.error(line, f"name: {shown(name)} is no name for a skill", fix)
        return name
    if not is_skill_name(folder):
        fix = "rename the folder: letters, digits, - and _"
        fields.findings.error(1, f"name: {shown(folder)} is no name for a skill", fix)
    elif has_head:
        fields.findings.warn(1, f"name: it has none; it is called {folder}", f"name: {folder}")
    return folder


def _check_description(fields: Fields, text: str) -> None:
    line, findings = fields.line("description"), fields.findings
    if not text:
        findings.error(line, "description: required", "say what it is good for, and when")
    elif len(text) > _DESCRIPTION_CHARACTERS:
        findings.error(line, f"description: more than {_DESCRIPTION_CHARACTERS} characters")
    elif "<" in text or ">" in text:
        findings.error(line, "description: has < or >", "write it without tags")


def _check_rest(fields: Fields) -> None:
    fields.words("allowed_tools")
    for name in ("license", "compatibility", "author"):
        fields.text(name)
    version = fields.text("version")
    line = fields.line("version")
    if version and not _VERSION.fullmatch(version):
        fields.findings.error(line, f"version: {shown(version)} is no version", "write 1.0.0")
    metadata = fields.node("metadata")
    if metadata is not None and not isinstance(metadata, Entries):
        fields.findings.error(fields.line("metadata"), "metadata: a mapping is expected")
