"""A worker that does not want to end: `escape.py PIDS`.

It starts a process that leaves its session, its parent and its environment behind; both ignore
SIGTERM, and both write their pid into a line of the file PIDS.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path


def main(pids: Path) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            # Ignored signals stay ignored over an exec.
            script = f"echo $$ >> '{pids}'; while :; do sleep 1000; done"
            os.execve("/bin/sh", ["sh", "-c", script], {})
        os._exit(0)
    os.wait()
    with pids.open("a") as file:
        file.write(f"{os.getpid()}\n")
    while True:
        signal.pause()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
