"""A worker that does not want to end, as $BOOK/<task>.log tells.

It starts a process that leaves its session, its parent and its environment behind. Both ignore
SIGTERM, and both hold `<task>.lock`: what finds it held writes `twice`, as `worker.py` does.
"""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path


def main() -> None:
    # Ignored signals stay ignored over an exec.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    task = os.environ["CREWD_TASK_ID"]
    book = Path(os.environ["BOOK"])
    with (book / f"{task}.lock").open("wb") as lock, (book / f"{task}.log").open("a") as log:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.write(f"{os.getpid()} twice\n")
        os.set_inheritable(lock.fileno(), True)
        _escape(f"echo $$ start >> '{log.name}'; while :; do sleep 1000; done")
        log.write(f"{os.getpid()} start\n")
        log.flush()
        while True:
            signal.pause()


def _escape(line: str) -> None:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve("/bin/sh", ["sh", "-c", line], {})  # noqa: S606 - the point of it
        os._exit(0)
    os.wait()


if __name__ == "__main__":
    main()
