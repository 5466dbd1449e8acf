"""A JSON-lines worker that asks a person which part of the version to raise."""

import json
import sys
from pathlib import Path


def say(**message: object) -> None:
    print(json.dumps(message), flush=True)


task = json.loads(sys.stdin.readline())
say(type="hello", protocol=1, name="release", version="1")
for dependency in task["dependencies"]:
    say(type="message", text=f"{dependency['task_id']}: {dependency['text'].strip()}")
say(
    type="ask",
    id="part",
    question="Which part of version 1.2.3 shall be raised?",
    options=["patch", "minor", "major"],
    allow_text=False,
)
for line in sys.stdin:
    answer = json.loads(line)
    if answer["type"] == "answer":
        break
else:
    sys.exit("nobody answered")
versions = {"patch": "1.2.4", "minor": "1.3.0", "major": "2.0.0"}
part = answer["text"]
if answer["outcome"] != "answered" or part not in versions:
    say(type="result", outcome="failed", error=f"no version chosen: {answer['outcome']}",
        retryable=False)
    sys.exit(0)
Path("VERSION").write_text(versions[part] + "\n")
say(type="result", outcome="completed", text=f"version {versions[part]} ({part})")
