"""A worker whose output nobody ordered: `noise.py KIND`, then a result and exit code 0.

A flood begins once $FLOODGATE is there.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

GARBAGE = (
    b"\x00\x01\xff\xfe\n",
    b'{"type": "ask"}\n',
    b'{"type": ["usage"], "input_tokens": {}}\n',
    b'{"type": "usage", "input_tokens": "many", "cost_usd": 1e999}\n',
    b'{"type": "result"}\n',
    b'{"type": "progress", "percent": NaN, "text": "\xc3\x28 \xed\xa0\x80"}\n',
    b'{"type": "message", "text": "\\ud800"}\n',
    b"[" * 100_000 + b"\n",
    b'{"a":' * 50_000 + b"\n",
    b"\r\n\n \xe2\x28\xa1 no end of line at all: ",
)
MIB = 1 << 20
LONG_LINE_BYTES = 50 * MIB
FLOOD_BYTES = 80 * MIB


def main(kind: str) -> None:
    if kind == "garbage":
        write(b"".join(GARBAGE))
    elif kind == "long":
        for _ in range(LONG_LINE_BYTES // MIB):
            write(b"X" * MIB)
    else:
        while not Path(os.environ["FLOODGATE"]).exists():
            time.sleep(0.01)
        line = b"Y" * 1023 + b"\n"
        for _ in range(FLOOD_BYTES // MIB):
            write(line * 1024)
    write(b'\n{"type": "result", "outcome": "completed", "text": "done"}\n')


def write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    main(sys.argv[1])
