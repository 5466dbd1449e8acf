"""Finds a dead link in the README, every time: this step fails for good."""

import sys
from pathlib import Path

dead = [line for line in Path("README.md").read_text().splitlines() if "example.invalid" in line]
print(f"{len(dead)} dead link(s)", file=sys.stderr)
sys.exit(3 if dead else 0)
