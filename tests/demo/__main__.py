"""Shows crewd at work in a private state directory, and leaves nothing behind.

A run of eleven steps in a real git repository: one step is retried, one fails for good while the
other branches go on, one asks a person, and the daemon is killed with -9 in the middle.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

PROJECT: Final = Path(__file__).parent / "project"
BIN: Final = Path(sys.executable).parent
SECONDS: Final = 60.0
RUN_FAILED: Final = 1
BEATS: Final = 60

INTRODUCTION: Final = """\
crewd demo: a run of eleven steps in the git repository {repository}
  - `fetch` fails once and is tried again
  - `links` fails for good; `site` needs it and is skipped; every other branch goes on
  - while `soak` runs, the daemon is killed with -9 and started again: the workers never notice
  - `release` asks a question: {how}
"""


def main() -> int:
    place = Path(tempfile.mkdtemp(prefix="crewd-demo-"))
    try:
        repository = make_repository(place / "greeting")
        with a_daemon(place):
            return show(repository)
    finally:
        shutil.rmtree(place)


def make_repository(folder: Path) -> Path:
    shutil.copytree(PROJECT, folder)
    for command in (
        ["init", "--quiet"],
        ["config", "user.name", "demo"],
        ["config", "user.email", "demo@localhost"],
        ["add", "--all"],
        ["commit", "--quiet", "--message", "Start"],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


@contextmanager
def a_daemon(place: Path) -> Generator[None]:
    """Let every command below find a daemon of our own, and stop all of it at the end."""
    os.environ["CREWD_STATE_DIR"] = str(place / "state")
    os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    for name in ("CREWD_SOCKET", "CREWD_TOKEN", "CREWD_TOKEN_FILE", "CREWD_TASK_TOKEN"):
        os.environ.pop(name, None)
    call("crewd", "ensure")
    try:
        yield
    finally:
        call("crewd", "stop", "--all")


def show(repository: Path) -> int:
    at_terminal = sys.stdin.isatty() and sys.stderr.isatty()
    how = "answer it at the prompt" if at_terminal else "no terminal here, so the demo answers it"
    print(INTRODUCTION.format(repository=repository, how=how), flush=True)
    run_id = call("crew", "run", "--file", "run.yaml", "--detach", cwd=repository).strip()
    helper = threading.Thread(target=interfere, args=[run_id, not at_terminal])
    helper.start()
    code = subprocess.run([BIN / "crew", "watch", run_id], cwd=repository, check=False).returncode
    helper.join()
    return verdict(run_id, code, repository)


def interfere(run_id: str, answer: bool) -> None:  # noqa: FBT001 - a thread's argument
    kill_the_daemon(run_id)
    if answer:
        answer_the_question(run_id)


def kill_the_daemon(run_id: str) -> None:
    wait_for(lambda: task(run_id, "soak")["status"] == "running", "the soak step to run")
    daemon = json.loads(call("crewd", "ensure", "--json"))
    os.kill(daemon["pid"], signal.SIGKILL)
    call("crewd", "ensure")


def answer_the_question(run_id: str) -> None:
    def asked() -> list[str]:
        lines = call("crew", "asks", "--json").splitlines()
        return [ask["id"] for ask in map(json.loads, lines) if ask["run_id"] == run_id]

    wait_for(asked, "the question")
    call("crew", "answer", asked()[0], "--option", "minor")


def verdict(run_id: str, code: int, repository: Path) -> int:
    """Say what came out, and whether it is what it should be."""
    tasks = {t["id"]: t for t in json.loads(call("crew", "show", run_id, "--json"))["tasks"]}
    version = (repository / "VERSION").read_text().strip()
    soak = call("crew", "logs", run_id, "soak").splitlines()
    checks = {
        "fetch completed on its second attempt": tasks["fetch"]["attempt"] == 2,
        "links failed, site was skipped": (tasks["links"]["status"], tasks["site"]["status"])
        == ("failed", "skipped"),
        "all other steps completed": all(
            t["status"] == "completed" for t in tasks.values() if t["id"] not in {"links", "site"}
        ),
        "soak ran once, across the kill, with all its output": tasks["soak"]["attempt"] == 1
        and soak == [f"beat {beat} of {BEATS}" for beat in range(1, BEATS + 1)],
        f"the answer reached the worker: version {version} is committed": tasks["tag"]["status"]
        == "completed"
        and version != "1.2.3",
        "the run ended as failed, for links (exit code 1)": code == RUN_FAILED,
    }
    print()
    for what, held in checks.items():
        print(f"{'ok  ' if held else 'NOT '} {what}")
    return 0 if all(checks.values()) else 1


def task(run_id: str, task_id: str) -> dict[str, Any]:
    tasks = json.loads(call("crew", "show", run_id, "--json"))["tasks"]
    return next(t for t in tasks if t["id"] == task_id)


def wait_for(fact: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not fact():
        if time.monotonic() > deadline:
            message = f"waited {SECONDS:.0f} s for {what}"
            raise TimeoutError(message)
        time.sleep(0.05)


def call(program: str, *arguments: str, cwd: Path | None = None) -> str:
    command = [str(BIN / program), *arguments]
    ended = subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True)
    return ended.stdout


if __name__ == "__main__":
    sys.exit(main())
