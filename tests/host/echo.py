"""A real process that says what it hears, and jobs that have it one after the other."""

from __future__ import annotations

import sys
from functools import partial

from crewd.host.protocol import STREAMS
from tests.host.driver import Controller, HostUnderTest, Message, eventually

OLD, NEW = "run/old/1", "run/new/1"

# Says what it hears; `child` and `stray` start a process that lives on, `end` ends all.
ECHO = """
import os, subprocess, sys
child = None
for line in sys.stdin:
    word = line.strip()
    if word == "child":
        child = subprocess.Popen(["/bin/sleep", "600"])
        word = str(child.pid)
    elif word == "reap":
        child.kill()
        child.wait()
    elif word == "stray":
        shell = "setsid /bin/sleep 600 >/dev/null 2>&1 & echo $!"
        word = subprocess.run(["/bin/sh", "-c", shell], capture_output=True, text=True).stdout
    elif word == "deaf":
        os.close(0)
    print(word.strip(), flush=True)
    print("!", file=sys.stderr, flush=True)
    if word == "end":
        sys.exit(7)
    if word == "deaf":
        import time
        time.sleep(600)
"""


class Echo:
    """A process that says what it hears, under whatever job it has."""

    def __init__(self, host: HostUnderTest, controller: Controller, **fields: object) -> None:
        self._host = host
        self.controller = controller
        answer = controller.start(OLD, sys.executable, "-c", ECHO, stdin=True, **fields)
        self.pid = int(answer["pid"])
        self.seq: dict[str, int] = {}

    def tell(self, job: str, word: str) -> None:
        self.seq[job] = self.seq.get(job, 0) + 1
        message = {"job": job, "seq": self.seq[job], "data": f"{word}\n"}
        assert self.controller.ask("write", **message)["ok"]

    def say(self, job: str, word: str) -> str:
        """Return the last line it says once it has heard this, on both streams."""
        before = [len(self._host.spooled(job, stream)) for stream in STREAMS]
        self.tell(job, word)
        for stream, size in zip(STREAMS, before, strict=True):
            eventually(partial(self._has_line, job, stream, size))
        return self._host.spooled(job).decode().splitlines()[-1]

    def hand_on(self, source: str = OLD, target: str = NEW, **fields: object) -> Message:
        return self.controller.ask("pass", **self.order(source, target, **fields))

    def refusal(self, source: str = OLD, target: str = NEW, **fields: object) -> str:
        """Return why it is refused, having seen that nothing has changed by it."""
        before = self.known()
        answer = self.hand_on(source, target, **fields)
        assert (answer["ok"], answer["error"]["kind"]) == (False, "not_passed")
        assert self.known() == before
        return str(answer["error"]["message"])

    def known(self) -> Message:
        return {**self.controller.ask("list"), "id": 0}

    def _has_line(self, job: str, stream: str, offset: int) -> bool:
        return self._host.spooled(job, stream)[offset:].endswith(b"\n")

    def order(self, source: str, target: str, **fields: object) -> Message:
        return {"from": source, "to": target, "epoch": self.controller.epoch, **fields}
