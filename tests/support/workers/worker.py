"""A worker that does what its arguments say, one after another, and keeps a book about itself.

The book is the directory $BOOK. While a worker of a task lives it holds `<task>.lock`, so another
one of the same task can tell, and writes `twice` into `<task>.log`. That file also has a line for
each start, each line that was heard on stdin, and the end. Spoken is jsonl; a `command` task just
prints it.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from queue import SimpleQueue
from typing import Any

PAUSE_SECONDS = 0.01

Message = dict[str, Any]


class Book:
    def __init__(self) -> None:
        task = os.environ["CREWD_TASK_ID"]
        folder = Path(os.environ["BOOK"])
        self._log = os.open(folder / f"{task}.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        lock = os.open(folder / f"{task}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.write("twice")
        self.write("start")

    def write(self, *words: str) -> None:
        os.write(self._log, " ".join((str(os.getpid()), *words)).encode() + b"\n")


class Worker:
    def __init__(self, book: Book) -> None:
        self._book = book
        self._heard: dict[str, SimpleQueue[Message]] = {}
        for kind in ("task", "answer", "steer", "stop"):
            self._heard[kind] = SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def do(self, step: str) -> None:
        verb, _, rest = step.partition(" ")
        getattr(self, f"_{verb}")(rest)

    def _listen(self) -> None:
        for line in sys.stdin:
            message: Message = json.loads(line)
            kind = message["type"]
            self._book.write("heard", kind, str(message.get("id", "-")), message.get("text", ""))
            if kind in self._heard:
                self._heard[kind].put(message)

    def _tell(self, kind: str, /, **fields: object) -> None:
        self._print(json.dumps({"type": kind, **fields}))

    def _print(self, line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    def _hello(self, _: str) -> None:
        self._tell("hello", protocol=1, can_steer=True)

    def _lines(self, rest: str) -> None:
        """Print so many numbered lines, pausing for so long after each."""
        count, pause = rest.split()
        for number in range(1, int(count) + 1):
            self._print(f"line {number}")
            time.sleep(float(pause))

    def _chatter(self, rest: str) -> None:
        """Say so many messages of so many characters."""
        count, size = map(int, rest.split())
        for _ in range(count):
            self._tell("message", text="m" * size)

    def _file(self, rest: str) -> None:
        """Hand in a file of the directory."""
        name, path = rest.split()
        self._tell("artifact", name=name, path=path, kind="report")

    def _notes(self, rest: str) -> None:
        """Hand in so many texts, each of so many characters."""
        count, size = map(int, rest.split())
        for number in range(1, count + 1):
            self._tell("artifact", name=f"note-{number}", text=str(number % 10) * size)

    def _usage(self, tokens: str) -> None:
        self._tell("usage", input_tokens=int(tokens), output_tokens=1, cost_usd=0.001)

    def _ask(self, rest: str) -> None:
        """Ask, and repeat the answer once it is there."""
        ref, _, question = rest.partition(" ")
        self._tell("ask", id=ref, question=question or f"{ref}?")
        answer = self._heard["answer"].get()
        self._print(f"{answer['id']} {answer['outcome']} {answer['text']}")

    def _steer(self, _: str) -> None:
        note = self._heard["steer"].get()
        self._tell("steer_seen", id=note["id"])
        self._print(f"steered {note['text']}")

    def _wait(self, path: str) -> None:
        """Go on once a file is there."""
        while not Path(path).exists():
            time.sleep(PAUSE_SECONDS)

    def _flaky(self, times: str) -> None:
        """Fail in the first attempts."""
        if self._heard["task"].get()["attempt"] <= int(times):
            self._exit("9")

    def _result(self, text: str) -> None:
        self._tell("result", outcome="completed", text=text)

    def _long(self, size: str) -> None:
        """Hand in a result of so many characters."""
        self._result("r" * int(size))

    def _fail(self, message: str) -> None:
        self._tell("result", outcome="failed", error=message, retryable=False)

    def _deaf(self, _: str) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def _exit(self, code: str) -> None:
        self._book.write("end")
        os._exit(int(code))


def main() -> None:
    book = Book()
    worker = Worker(book)
    for step in sys.argv[1:]:
        worker.do(step)
    book.write("end")
    # Without waiting for the thread that listens.
    os._exit(0)


if __name__ == "__main__":
    main()
