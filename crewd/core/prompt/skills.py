"""The skills that a task is given, cut to the room they have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from crewd.core.prompt.fence import Fence
from crewd.core.prompt.rules import PROJECT_SKILL
from crewd.core.prompt.text import displayed, one_line
from crewd.core.prompt.values import Leftovers, Part
from crewd.core.spec import RunSpec, SkillSpec, TaskSpec
from crewd.core.values import value

NAMES: Final = 32
SKILL_CHARACTERS: Final = 1_500
TOTAL_CHARACTERS: Final = 6_000
_NAME: Final = 64
_CODE: Final = ("```", "~~~")
_PROVENANCE: Final = {"builtin": "built in", "user": "the user's own", "project": "the project's"}


@value
class Shown:
    """A skill as a prompt may show it."""

    spec: SkillSpec
    text: str
    whole: bool

    @property
    def is_trusted(self) -> bool:
        return self.spec.source in {"builtin", "user"}


def shown_skills(run: RunSpec, task: TaskSpec) -> tuple[Shown, ...]:
    known = (run.skills[name] for name in dict.fromkeys(task.skills) if name in run.skills)
    return tuple(_shown(spec) for spec in known)


def missing_skills(run: RunSpec, task: TaskSpec) -> tuple[str, ...]:
    lost = (name for name in task.skills if name not in run.skills)
    return tuple(dict.fromkeys([*task.skills_missing, *lost]))


def foreign_texts(skills: Sequence[Shown]) -> Iterator[str]:
    for skill in skills:
        if not skill.is_trusted:
            yield _about(skill)
            yield skill.text


def skills_part(
    skills: Sequence[Shown], missing: Sequence[str], fence: Fence, leftovers: Leftovers
) -> Part:
    """Return the first skills that fit, and the names of all others."""
    if not skills and not missing:
        return Part("skills")
    text = _block(skills, len(skills), missing, fence, "")
    if len(skills) <= NAMES and len(text) <= TOTAL_CHARACTERS and all(s.whole for s in skills):
        return Part("skills", text)
    where = leftovers.keep("skills.full.md", "\n\n".join(map(_whole, skills)))
    count = min(len(skills), NAMES)
    text = _block(skills, count, missing, fence, where)
    while count and len(text) > TOTAL_CHARACTERS:
        count -= 1
        text = _block(skills, count, missing, fence, where)
    for index, skill in enumerate(skills):
        if index >= count or not skill.whole:
            what = "left out" if index >= count else "shortened"
            size = len(skill.spec.text)
            leftovers.tell(f"skill {skill.spec.name}: {what}; its {size} characters are in {where}")
    return Part("skills", text)


def compact(text: str) -> tuple[str, bool]:
    """Return a skill in its room, and whether that is all of it.

    How to verify goes first: every task is told that anyway.
    """
    if len(text) <= SKILL_CHARACTERS:
        return text, True
    shorter = _without_verification(text)
    marker = "\n[... shortened ...]"
    return shorter[: SKILL_CHARACTERS - len(marker)].rstrip() + marker, False


def _shown(spec: SkillSpec) -> Shown:
    trusted = spec.source in {"builtin", "user"}
    text, whole = compact(spec.text if trusted else displayed(spec.text))
    return Shown(spec, text, whole)


def _without_verification(text: str) -> str:
    kept: list[str] = []
    in_code = dropping = False
    for line in text.split("\n"):
        if line.lstrip().startswith(_CODE):
            in_code = not in_code
        elif not in_code and line.startswith(("# ", "## ")):
            dropping = line.rstrip().lower() == "## verification"
        if not dropping:
            kept.append(line)
    return "\n".join(kept)


def _block(
    skills: Sequence[Shown], count: int, missing: Sequence[str], fence: Fence, where: str
) -> str:
    lines = ["# Skills"]
    if skills:
        lines.append("How to work. The task comes first where a skill does not fit it.")
    lines += [_section(skill, fence) for skill in skills[:count]]
    if len(skills) > count:
        lines.append(f"Omitted for want of room, {len(skills) - count}: {_names(skills[count:])}.")
    if where:
        lines.append(f"All of them are whole in {where}; read there what you need.")
    if missing:
        names = _listed(missing)
        lines.append(f"Not found, {len(missing)}: {names}. Work without, and report it.")
    return "\n\n".join(lines)


def _section(skill: Shown, fence: Fence) -> str:
    spec = skill.spec
    provenance = _PROVENANCE.get(spec.source, _PROVENANCE["project"])
    title = f"## Skill {one_line(spec.name, _NAME)} ({provenance})"
    if skill.is_trusted:
        return "\n\n".join(filter(None, (title, _about(skill), skill.text)))
    foreign = fence.around(f"{_about(skill)}\n\n{skill.text}", "a skill of the project")
    return f"{title}\n\n{PROJECT_SKILL}\n\n{foreign}"


def _about(skill: Shown) -> str:
    spec = skill.spec
    folder = f"Its files are in {one_line(spec.folder, 1024)}." if spec.folder else ""
    return "\n".join(filter(None, (one_line(spec.description, 1024), folder)))


def _whole(skill: Shown) -> str:
    return f"# {skill.spec.name} ({skill.spec.source})\n\n{_about(skill)}\n\n{skill.spec.text}"


def _names(skills: Sequence[Shown]) -> str:
    return _listed([skill.spec.name for skill in skills])


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(one_line(name, _NAME) for name in names[:NAMES])
    return shown if len(names) <= NAMES else f"{shown} and {len(names) - NAMES} more"
