"""A worker that asks, waits for its answer, asks again, and writes down how long each took.

`python -I -S asking.py COUNT PAUSE FILE`, as a `jsonl` task.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any


def say(**message: str) -> None:
    sys.stdout.write(f"{json.dumps(message)}\n")
    sys.stdout.flush()


def main(count: int, pause: float, file: Path) -> None:
    taken: list[float] = []
    for n in range(count):
        time.sleep(pause)
        start = time.perf_counter()
        say(type="ask", id=f"q{n}", question="go on?")
        for line in sys.stdin:
            message: dict[str, Any] = json.loads(line)
            if message["type"] == "answer":
                break
        taken.append(1000 * (time.perf_counter() - start))
    file.write_text(json.dumps(taken))
    say(type="result", outcome="completed", text="asked enough")


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3]))
