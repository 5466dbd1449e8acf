"""Records what the real `pi` says: `python -m tests.agents.record` rewrites `tests/data/pi`.

Each case is one process that is told things as crewd would tell it, by the adapter itself; what
its stdout says is kept line by line. The golden reports are then written from the recording.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO, Final

from crewd.core.messages import prompt_message, reply_message, steer_message, stop_message
from crewd.core.reports import Asked, ResultGiven, ToolBegan, TurnEnded
from crewd.core.units import seconds
from crewd.core.words import OutboxKind
from crewd.workers.adapter import Line
from crewd.workers.lines import Stream
from crewd.workers.pi import PiAdapter
from crewd.workers.pi_start import EXTENSION
from tests.support.pi import BIN, MODEL, configure
from tests.support.pi_golden import DATA, golden
from tests.support.scripted_model import ScriptedModel

_PLACES: Final = re.compile(r"/[^ \"\\]*/node_modules/|/tmp/[a-z0-9_]+")
_PATIENCE: Final = 60.0

Bodies = Iterator[str]


@dataclass(frozen=True)
class Case:
    prompt: str
    model: str = MODEL
    on_report: Callable[[object], Bodies] = lambda _: iter(())
    """What is said back to a report."""
    on_line: Mapping[str, str] = field(default_factory=dict[str, str])
    """What is said once a line of this type came."""


def _answers(report: object) -> Bodies:
    if isinstance(report, Asked):
        outcome = {"outcome": "answered", "text": "use B", "answered_by": "ann"}
        yield json.dumps({"type": "answer", "id": report.ref, **outcome})


def _judges(report: object) -> Bodies:
    if isinstance(report, ResultGiven):
        taken = report.result.data_json == '{"n":1}'
        message = "taken" if taken else "not taken: n is no number; mend it and hand in again"
        yield reply_message(report.ref, taken=taken, message=message)


def _steers() -> Callable[[object], Bodies]:
    calls = count(1)

    def on_report(report: object) -> Bodies:
        if isinstance(report, ToolBegan) and next(calls) == 1:
            yield steer_message("steer_1", "Say it [[plain:as steered]]")
            yield steer_message("steer_2", "Be brief.")

    return on_report


def _continues() -> Callable[[object], Bodies]:
    turns = count(1)

    def on_report(report: object) -> Bodies:
        if isinstance(report, TurnEnded) and next(turns) == 1:
            yield prompt_message("Go on.")

    return on_report


def _cases() -> Mapping[str, Case]:
    stop = stop_message("cancelled", seconds(5))
    return {
        "plain": Case("Say it. [[plain:forty two]]"),
        "tool": Case("Run it. [[tool:echo one; echo two]]"),
        "tool_fails": Case("Run it. [[tool:echo bad; exit 3]]"),
        "empty": Case("[[empty]]"),
        "length": Case("[[length]]", on_report=_continues()),
        "error_400": Case("[[error:400]]"),
        "error_401": Case("[[error:401 Incorrect API key provided]]"),
        "error_429": Case("[[error:429]]"),
        "error_500": Case("[[error:500]]"),
        "drop": Case("[[drop]]"),
        "ask": Case('[[ask:{"question":"A or B?","options":["A","B"]}]]', on_report=_answers),
        "ask_stopped": Case(
            '[[ask:{"question":"A?","timeout_s":60}]]', on_line={"extension_ui_request": stop}
        ),
        "submit": Case('[[submit:{"n":"x"}|{"n":1}]]', on_report=_judges),
        "steer": Case("[[tool:sleep 0.3]]", on_report=_steers()),
        "stop": Case("[[hang]]", on_line={"turn_start": stop}),
        "no_key": Case("x", model="openai/gpt-4o"),
    }


def _arguments(case: Case) -> list[str]:
    ours = ["--no-extensions", "--extension", str(EXTENSION), "--no-skills"]
    return ["pi", "--mode", "rpc", "--no-session", *ours, "--model", case.model]


def _record(case: Case, base_url: str) -> list[str]:
    """Run one case and return the lines that pi wrote."""
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        env = {"PATH": f"{BIN}:/usr/bin:/bin", "HOME": place, **configure(home / "pi", base_url)}
        process = subprocess.Popen(
            _arguments(case),
            executable=BIN / "pi",
            cwd=place,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdin as stdin, process.stdout as stdout:
            lines = list(_talk(case, stdin, stdout))
        process.wait(_PATIENCE)
    return lines


def _talk(case: Case, stdin: IO[bytes], stdout: IO[bytes]) -> Iterator[str]:
    adapter, ids = PiAdapter(), count(1)
    state, told = adapter.initial(), dict(case.on_line)

    def say(body: str) -> None:
        stdin.write(adapter.encode(OutboxKind.PROMPT, body))
        stdin.flush()

    say(prompt_message(case.prompt))
    for data in stdout:
        yield _PLACES.sub("/opt/", data.decode())
        folded = adapter.fold(state, Line(Stream.STDOUT, data[:-1]), lambda: f"ask_{next(ids)}")
        state = folded.state
        said = [body for report in folded.reports for body in case.on_report(report)]
        said += [body for _, body in folded.writes]
        for kind in [kind for kind in told if f'{{"type":"{kind}"'.encode() in data]:
            said.append(told.pop(kind))
        for body in said:
            say(body)
        if not said and any(isinstance(r, TurnEnded) for r in folded.reports):
            stdin.close()


def main() -> None:
    DATA.mkdir(exist_ok=True)
    with ScriptedModel().serving() as model:
        for name, case in _cases().items():
            path = DATA / f"{name}.jsonl"
            path.write_text("".join(_record(case, model.base_url)))
            path.with_suffix(".reports.jsonl").write_text(golden(path))
            sys.stdout.write(f"{name}: {path.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
