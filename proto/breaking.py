# ruff: noqa: INP001 - a script beside the contract, not a package
"""Refuse a contract that breaks programs written for the last release.

The last release is the highest tag `vX.Y.Z` that HEAD descends from. What breaks is named, and the
exit code is 1. Where nothing can be compared, a warning says so and the exit code is 0.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUF = Path(sys.executable).parent / "buf"
# Pre-releases promise nothing.
RELEASE = re.compile(r"v(\d+)\.(\d+)\.(\d+)")
# The repository may belong to another user, as in a container; buf runs git too.
ENVIRONMENT = {
    **os.environ,
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
    "GIT_TERMINAL_PROMPT": "0",
}
# What buf exits with when something breaks; with something else, it could not compare.
FOUND = 100
PATIENCE = 30.0


def main() -> int:
    if not (ROOT / ".git").exists():
        return warn("this is no git repository")
    tag = last_release()
    if tag is None:
        return without_release()
    against = f".git#tag={tag},subdir=proto"
    done = run(BUF, "breaking", "proto", "--against", against)
    sys.stderr.write(done.stdout + done.stderr)
    if done.returncode == FOUND:
        sys.stderr.write(f"The contract breaks what was written for {tag}; add, or make a v2.\n")
    return 1 if done.returncode else 0


def last_release() -> str | None:
    """Give the tag of the last release, `None` without any."""
    # With its history cut off, a clone does not know what a commit descends from.
    reach = [] if is_shallow() else ["--merged", "HEAD"]
    tags = map(RELEASE.fullmatch, git("tag", "--list", "v*", *reach).split())
    releases = [tag for tag in tags if tag is not None]
    return max(releases, key=lambda tag: [*map(int, tag.groups())])[0] if releases else None


def without_release() -> int:
    """Say that there is no release, unless it is only this clone that has none."""
    if not is_shallow():
        return warn("there is no release yet (no tag vX.Y.Z)")
    tags = run("git", "ls-remote", "--tags", "--refs", "origin", "v*")
    if tags.returncode:
        return warn("this clone is shallow and has no tags; git fetch --unshallow --tags")
    if not tags.stdout:
        return warn("there is no release yet (no tag vX.Y.Z)")
    sys.stderr.write("This clone has not the releases' tags: git fetch --unshallow --tags\n")
    return 1


def warn(why: str) -> int:
    sys.stderr.write(f"WARNING: {why}: the contract is compared with nothing\n")
    return 0


def is_shallow() -> bool:
    return git("rev-parse", "--is-shallow-repository").strip() == "true"


def git(*arguments: str) -> str:
    done = run("git", *arguments)
    if done.returncode:
        sys.exit(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    # Its arguments are this repository's own names.
    return subprocess.run(  # noqa: S603
        command,
        cwd=ROOT,
        env=ENVIRONMENT,
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


if __name__ == "__main__":
    sys.exit(main())
