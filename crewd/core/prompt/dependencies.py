"""What the tasks before one handed in, within the room there is for it.

What went wrong comes first, then what the task reads, then the order in which it names them.
Nothing is cut or left out without a word on its size and on where the whole is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from crewd.core.model import NO_RESULT, Task
from crewd.core.prompt.fence import Fence
from crewd.core.prompt.rules import DEPENDENCIES
from crewd.core.prompt.text import displayed, one_line, shorten
from crewd.core.prompt.values import Leftovers, Part
from crewd.core.values import value
from crewd.core.words import TaskStatus

EACH_CHARACTERS: Final = 32_000
TOTAL_CHARACTERS: Final = 96_000
MOST_SHOWN: Final = 256
"""Tasks with an entry of their own; a task that needs thousands gets one list of the others."""
_MESSAGE: Final = 1_000
_LISTED: Final = 2_000
"""Characters of a result in that list."""
_WENT_WRONG: Final = frozenset({TaskStatus.FAILED, TaskStatus.NEEDS_ATTENTION})


@value
class HandedIn:
    """A dependency as a prompt may show it."""

    task: Task
    text: str
    data: str
    message: str
    """What is known of why it did not complete, or of why a person took it as it is."""

    @property
    def is_empty(self) -> bool:
        return _is_empty(self.task)

    def texts(self) -> Iterator[str]:
        yield from (self.text, self.data, self.message)


def in_order(task: Task, dependencies: Sequence[Task]) -> list[Task]:
    """Return the dependencies, those first that matter most."""
    return sorted(dependencies, key=lambda d: (d.status not in _WENT_WRONG, not _is_read(task, d)))


def handed_in(task: Task) -> HandedIn:
    result = task.result or NO_RESULT
    message = task.resolution_note
    if task.status is not TaskStatus.COMPLETED:
        message = task.status_message or (task.error.message if task.error else "")
    return HandedIn(
        task,
        displayed(result.text),
        displayed(result.data_json),
        shorten(displayed(message), _MESSAGE),
    )


def dependencies_part(
    task: Task, ordered: Sequence[Task], shown: Sequence[HandedIn], rendering: Rendering
) -> Part:
    """Return an entry for each of those shown, and one for the rest of those ordered."""
    entries = [rendering.entry(task, handed) for handed in shown]
    rest = ordered[len(shown) :]
    if rest:
        entries.append(rendering.rest(rest))
    entries += [_missing(name, rendering.leftovers) for name in _not_handed_in(task, ordered)]
    if not entries:
        return Part("dependencies")
    return Part("dependencies", "\n\n".join(["# Results of other tasks", DEPENDENCIES, *entries]))


class Rendering:
    """Shows results while there is room left."""

    def __init__(self, room: int, fence: Fence, leftovers: Leftovers) -> None:
        self._each = min(EACH_CHARACTERS, room)
        self._left = room
        self._fence = fence
        self.leftovers = leftovers

    def entry(self, task: Task, handed: HandedIn) -> str:
        lines = [_title(handed.task)]
        if _is_read(task, handed.task):
            output = handed.task.spec.output.name or handed.task.id
            lines.append(f"This task reads it as `{one_line(output)}`.")
        if handed.message:
            lines.append(self._message(handed))
        if handed.is_empty:
            lines.append("No result: it handed nothing in.")
        else:
            lines += self._result(handed)
        return "\n\n".join(lines)

    def rest(self, tasks: Sequence[Task]) -> str:
        listed = "\n\n".join(_listed(task, self.leftovers) for task in tasks)
        where = self.leftovers.keep("dependencies.list.md", listed)
        without = sum(map(_is_empty, tasks))
        told = f"{len(tasks)} more tasks: {len(tasks) - without} with a result, {without} without"
        self.leftovers.tell(f"{told}; they are listed in {where}")
        return f"## Other tasks\n\n{told}. Omitted for want of room; they are listed in {where}."

    def _message(self, handed: HandedIn) -> str:
        size = len(handed.message)
        if size > self._left:
            self.leftovers.tell(f"message of {handed.task.id}: left out; {size} characters")
            return f"Omitted for want of room: its message, {size} characters."
        self._left -= size
        return self._fenced(handed.message, handed.task, "message of task")

    def _result(self, handed: HandedIn) -> Iterator[str]:
        data = handed.data if len(handed.data) <= self._each // 2 else ""
        room = self._each - len(data)
        if not self._each or min(len(handed.text), room) + len(data) > self._left:
            yield self._left_out(handed)
            return
        text = shorten(handed.text, room)
        self._left -= len(text) + len(data)
        if text.strip():
            yield self._fenced(text, handed.task, "result of task")
        yield from self._cut(handed, text)
        if data:
            yield self._fenced(data, handed.task, "data (JSON) of task")
        elif handed.data:
            yield self._without_data(handed)

    def _left_out(self, handed: HandedIn) -> str:
        places: list[str] = []
        if handed.text or not handed.data:
            places.append(self._whole_text(handed))
        if handed.data:
            places.append(self._whole_data(handed))
        size = len(handed.text) + len(handed.data)
        where = " and ".join(places)
        self.leftovers.tell(f"result of {handed.task.id}: left out; its {size} characters: {where}")
        return f"Omitted for want of room: its result, {size} characters. It is in {where}."

    def _cut(self, handed: HandedIn, text: str) -> Iterator[str]:
        result = handed.task.result or NO_RESULT
        if len(text) == len(handed.text) and not result.truncated:
            return
        where = self._whole_text(handed)
        size = f"{len(text)} of its {'more than ' * result.truncated}{len(handed.text)} characters"
        self.leftovers.tell(f"result of {handed.task.id}: {size} shown; the whole: {where}")
        yield f"Not whole: {size} are shown. The whole is in {where}."

    def _without_data(self, handed: HandedIn) -> str:
        where, size = self._whole_data(handed), len(handed.data)
        self.leftovers.tell(f"data of {handed.task.id}: left out; its {size} characters: {where}")
        return f"Omitted for want of room: its data, {size} characters of JSON. It is in {where}."

    def _whole_text(self, handed: HandedIn) -> str:
        task, result = handed.task, handed.task.result or NO_RESULT
        if result.sha256:
            return self.leftovers.file(result.sha256)
        if result.truncated:
            return "its output, which only a person can read"
        return self.leftovers.keep(f"{task.id}.full.txt", result.text)

    def _whole_data(self, handed: HandedIn) -> str:
        data = (handed.task.result or NO_RESULT).data_json
        return self.leftovers.keep(f"{handed.task.id}.data.json", data)

    def _fenced(self, text: str, task: Task, what: str) -> str:
        return self._fence.around(text, f"{what} {task.id}")


def _is_read(task: Task, dependency: Task) -> bool:
    return bool({dependency.id, dependency.spec.output.name}.intersection(task.spec.reads))


def _not_handed_in(task: Task, dependencies: Sequence[Task]) -> list[str]:
    known = {name for d in dependencies for name in (d.id, d.spec.output.name)}
    return [name for name in dict.fromkeys(task.spec.reads) if name not in known]


def _missing(name: str, leftovers: Leftovers) -> str:
    leftovers.tell(f"output {name}: no task before this one hands it in")
    return f"Not there: this task is to read `{one_line(name)}`, which no task before it hands in."


def _title(task: Task) -> str:
    title = one_line(task.spec.title)
    named = title and title.lower() != task.id
    words = [f"## Task {task.id}" + (f": {title}" if named else "")]
    role = one_line(task.spec.role)
    words.append(f"Status: {task.status}" + (f"; role: {role}" if role else ""))
    return "\n\n".join(words)


def _is_empty(task: Task) -> bool:
    result = task.result or NO_RESULT
    return not (result.text.strip() or result.data_json or result.artifact_id)


def _listed(task: Task, leftovers: Leftovers) -> str:
    result = task.result or NO_RESULT
    whole = f"The whole is in {leftovers.file(result.sha256)}." if result.sha256 else ""
    texts = (_begun(text) for text in (result.text, result.data_json))
    return "\n\n".join(filter(None, (_title(task), *texts, whole)))


def _begun(text: str) -> str:
    cut = f"\n[... {_LISTED} of {len(text)} characters ...]"
    return text if len(text) <= _LISTED else text[:_LISTED] + cut
