"""What a worker is told: the bodies of its outbox rows, JSON text in the jsonl protocol's shape.

An adapter writes them in its worker's own words. Whatever size a run has, a message stays small
enough to be queued whole: the texts of dependencies share one budget.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from crewd.core.model import Answer, Ask, Attempt, Run, Task
from crewd.core.units import SECOND, Instant, Span

PROTOCOL: Final = 1
DEPENDENCY_BYTES: Final = 512 * 1024
"""Room for the results of all dependencies together; each gets an equal share."""

_UNIX_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_INSTANT: Final = Instant(253_402_300_799_999_999)
"""The end of the year 9999, where RFC 3339 ends."""


def task_message(  # noqa: PLR0913, PLR0917 - the parts of the message, each from another row
    run: Run,
    task: Task,
    attempt_number: int,
    dependencies: Sequence[Task],
    previous: Attempt | None,
    deadline: Instant | None,
) -> str:
    """Return the first message: what to do, and what the tasks before it handed in."""
    fields: dict[str, object] = {
        "type": "task",
        "protocol": PROTOCOL,
        "run_id": run.id,
        "task_id": task.id,
        "attempt": attempt_number,
        "role": task.spec.role,
        "title": task.spec.title,
        "goal": run.spec.goal,
        "prompt": task.spec.prompt,
        "cwd": task.spec.cwd,
    }
    if deadline is not None:
        fields["deadline"] = _rfc3339(deadline)
    if previous is not None:
        fields["previous"] = {
            "attempt": previous.number,
            "cause": previous.cause or "",
            "message": previous.message,
        }
    share = DEPENDENCY_BYTES // max(1, len(dependencies))
    handed_in = ",".join(_dependency(task, share) for task in dependencies)
    return _with_raw(fields, "dependencies", f"[{handed_in}]")


def prompt_message(text: str) -> str:
    """Return what an agent is to do, as one prompt."""
    return _dumps({"type": "prompt", "text": text})


def prompt_text(body: str) -> str:
    """Return the text of a `prompt_message`."""
    text: str = json.loads(body)["text"]
    return text


def reply_message(ref: str, *, taken: bool, message: str, done: bool = False) -> str:
    """Return whether what the worker handed in was taken; if not, what is wrong with it.

    When it is `done`, nothing that it could still hand in would count.
    """
    fields: dict[str, object] = {"type": "reply", "id": ref, "taken": taken, "message": message}
    return _dumps({**fields, "done": taken or done})


def renew_message() -> str:
    return _dumps({"type": "renew"})


def next_message(ref: str, task_id: str, attempt: int) -> str:
    """Return whose a process is from now on."""
    return _dumps({"type": "next", "id": ref, "task_id": task_id, "attempt": attempt})


def next_of(body: str) -> tuple[str, int]:
    """Return task and attempt of a `next_message`."""
    fields = json.loads(body)
    return fields["task_id"], fields["attempt"]


def with_variables(body: str, variables: Mapping[str, str]) -> str:
    """Return a `next_message` that says how its programs know who they are."""
    return _dumps({**json.loads(body), "variables": dict(variables)})


def answer_message(ask: Ask, raw: Answer | None = None) -> str:
    """Return how the ask was settled, under the worker's own id for it.

    A choice without words carries the labels chosen as its text: a worker that offered plain
    texts gets one of them back. `raw` is the answer before it was redacted.
    """
    answer = raw or ask.answer or Answer()
    chosen = [o.label for o in ask.options if o.id in answer.option_ids]
    fields: dict[str, object] = {
        "type": "answer",
        "id": ask.worker_ref or ask.id,
        "outcome": ask.status,
        "text": answer.text or ", ".join(chosen) or answer.note,
    }
    if answer.option_ids:
        fields["options"] = list(answer.option_ids)
    fields["answered_by"] = ask.answered_by.name if ask.answered_by else ""
    return _dumps(fields)


def steer_message(steer_id: str, text: str) -> str:
    return _dumps({"type": "steer", "id": steer_id, "text": text})


def stop_message(reason: str, grace: Span) -> str:
    return _dumps({"type": "stop", "reason": reason, "grace_s": grace / SECOND})


def scaffold_text(task: Task) -> str:
    """Return the result of a task whose adapter only pretends: it must not read like work done."""
    spec = task.spec
    lines = ["Nothing was executed: this task has the scaffold adapter, which only tests a plan."]
    if spec.command:
        lines.append(f"It would have run: {json.dumps(list(spec.command), ensure_ascii=False)}")
    if spec.cwd:
        lines.append(f"In the directory: {spec.cwd}")
    if spec.role:
        lines.append(f"In the role: {spec.role}")
    if spec.prompt:
        lines.append(f"With the prompt:\n{_cut(spec.prompt, 32 * 1024)}")
    return "\n".join(lines)


def _dependency(task: Task, share: int) -> str:
    text = task.result.text if task.result else ""
    data = task.result.data_json if task.result else ""
    fields: dict[str, object] = {
        "task_id": task.id,
        "title": task.spec.title,
        "status": task.status,
        "text": _cut(text, share),
    }
    if data and len(text) + len(data) <= share:
        return _with_raw(fields, "data", data)
    return _dumps(fields)


def _with_raw(fields: Mapping[str, object], key: str, raw: str) -> str:
    """Add a value that is JSON text already, without reading it again."""
    return f'{_dumps(fields)[:-1]},"{key}":{raw}}}'


def _dumps(fields: Mapping[str, object]) -> str:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def _cut(text: str, limit: int) -> str:
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= limit else raw[:limit].decode("utf-8", "ignore")


def _rfc3339(instant: Instant) -> str:
    moment = _UNIX_EPOCH + timedelta(microseconds=min(instant, _LAST_INSTANT))
    return moment.isoformat().replace("+00:00", "Z")
