"""Fails the first time it is run, as downloads do."""

import sys
from pathlib import Path

marker = Path("build/fetch.tried")
if not marker.exists():
    marker.parent.mkdir(exist_ok=True)
    marker.touch()
    print("connection reset by peer", file=sys.stderr)
    sys.exit(7)
print("fetched on the second try")
