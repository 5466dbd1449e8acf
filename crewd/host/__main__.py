"""`python -m crewd.host --state-dir D`: run the host of one state directory."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from crewd.host.boot import serve
from crewd.host.protocol import IDLE_EXIT_SECONDS, UNREAD_BYTES, UNREAD_BYTES_ALONE
from crewd.host.server import Settings


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="crewd host", description="Runs processes for crewd serve."
    )
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--idle-exit", type=float, default=IDLE_EXIT_SECONDS, metavar="SECONDS")
    parser.add_argument("--unread-limit", type=int, default=UNREAD_BYTES, metavar="BYTES")
    parser.add_argument(
        "--unread-limit-alone", type=int, default=UNREAD_BYTES_ALONE, metavar="BYTES"
    )
    parser.add_argument("--reserve", type=int, metavar="BYTES")
    given = parser.parse_args(arguments)
    settings = Settings(
        idle_exit=given.idle_exit,
        unread_limit=given.unread_limit,
        unread_limit_alone=given.unread_limit_alone,
        reserve=given.reserve,
    )
    try:
        serve(given.state_dir, settings)
    except OSError as error:
        sys.exit(f"crewd host: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
