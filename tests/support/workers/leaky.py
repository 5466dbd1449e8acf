"""A worker that is careless with secrets: it repeats every one it gets, wherever it can.

As a jsonl worker it asks and waits for a note, too; with the argument `plain` it only prints.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

NAMES = ("DEPLOY_PASSWORD", "VAULT_ENTRY", "CREWD_TASK_TOKEN")


def tell(kind: str, **fields: object) -> None:
    sys.stdout.write(json.dumps({"type": kind, **fields}) + "\n")
    sys.stdout.flush()


def hear(kind: str) -> dict[str, Any]:
    for line in sys.stdin:
        message: dict[str, Any] = json.loads(line)
        if message["type"] == kind:
            return message
    raise EOFError(kind)


def spill(text: str) -> None:
    """Print it to both streams as it is, in words, and in JSON."""
    for stream in (sys.stdout, sys.stderr):
        stream.write(f"{text}\nit is {text}.\n{json.dumps({'text': text})}\n")
        stream.flush()


def main() -> None:
    known = " ".join(os.environ[name] for name in NAMES)
    spill(f"{known} api_key=printed-secret-4444")
    if "plain" in sys.argv:
        return
    tell("hello", protocol=1, can_steer=True)
    words = f"{known} {hear('task')['prompt']}"
    tell("message", text=words)
    tell("progress", text=words, step=words)
    tell("tool", id="t", name="sh", status="started", detail=words)
    tell("tool", id="t", name="sh", status="ended", detail=words)
    tell("error", cause="rate_limit", message=words)
    tell("artifact", name="notes", text=words, description=words)
    options = [{"id": "a", "label": words[:200], "description": words}]
    tell(
        "ask", id="q", question=f"token: asked-secret-5555 {known}?", detail=words, options=options
    )
    words += f" {hear('answer')['text']}"
    spill(words)
    note = hear("steer")
    tell("steer_seen", id=note["id"])
    words += f" {note['text']}"
    spill(words)
    data = {"password": "data-secret-8888", "known": known, "said": words}
    tell("result", outcome="completed", text=words, data=data)


if __name__ == "__main__":
    main()
