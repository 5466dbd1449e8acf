"""What `crew logs` makes of pi's events."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from crewd_client.commands.transcript import Transcript
from crewd_client.v1.artifact_pb2 import ARTIFACT_KIND_PROMPT, Artifact
from crewd_client.v1.run_stream_pb2 import OUTPUT_STREAM_STDERR
from crewd_client.v1.task_pb2 import Task
from tests.clients.support.crew import crew
from tests.clients.support.fake_daemon import RUN, FakeDaemon

RECORDED = Path(__file__).parents[1] / "data" / "pi"
STREAMS = sorted(path for path in RECORDED.glob("*.jsonl") if path.suffixes == [".jsonl"])
TOOL = "→ bash echo one; echo two\n  one\n  two\nThe tool said: one\ntwo\n"


def recorded(name: str) -> bytes:
    return (RECORDED / f"{name}.jsonl").read_bytes()


def shown(data: bytes, size: int = 1 << 20) -> str:
    text = Transcript("where it is")
    parts = [text.feed(data[at : at + size]) for at in range(0, len(data), size)]
    return b"".join([*parts, text.finish()]).decode()


def line(kind: str, **fields: object) -> bytes:
    return json.dumps({"type": kind, **fields}).encode() + b"\n"


def result(text: str, *, failed: bool = False) -> bytes:
    content = [{"type": "text", "text": text}]
    return line("tool_execution_end", toolName="t", result={"content": content}, isError=failed)


@pytest.mark.parametrize("size", [1, 1000, 1 << 20])
def test_tools_and_words_are_shown_and_the_prompt_is_named(size: int) -> None:
    assert shown(recorded("tool"), size) == f"prompt: 35 bytes (where it is)\n{TOOL}"


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("tool_fails", "✗ bad\n\n\n  Command exited with code 3\nThe tool said: bad"),
        ("error_401", 'bytes (where it is)\nerror: 401: {"message":"Incorrect API key provided"'),
        ("no_key", "error: No API key found for openai. …\n"),
    ],
)
def test_what_went_wrong_is_marked(name: str, last: str) -> None:
    assert last in shown(recorded(name))


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_no_event_that_pi_is_known_to_write_is_left_as_it_is(path: Path) -> None:
    assert '{"type"' not in shown(path.read_bytes())


def test_a_long_result_is_cut() -> None:
    said = shown(result("\n".join(map(str, range(30)))) + result("x" * 600)).splitlines()

    assert said[19:21] == ["  19", "  … 10 more lines"]
    assert said[21] == "  " + "x" * 499 + "…"


def test_a_failure_without_words_is_shown_too() -> None:
    assert shown(result("", failed=True) + result("")) == "✗\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"n": 1, "path": "a.py", "command": "ls\nrm"}, "→ t ls …\n"),
        ({"n": 1, "other": "words"}, "→ t words\n"),
        ({"n": [1]}, '→ t {"n": [1]}\n'),
        ({}, "→ t\n"),
        (None, "→ t\n"),
    ],
)
def test_a_tool_is_shown_with_what_says_most(arguments: object, said: str) -> None:
    assert shown(line("tool_execution_start", toolName="t", args=arguments)) == said


def test_a_later_word_to_the_worker_is_one_line() -> None:
    words = [{"role": "user", "content": text} for text in ("Do it.", "Stop.\nNow.")]

    said = shown(b"".join(line("message_end", message=each) for each in words))

    assert said == "prompt: 6 bytes (where it is)\n← Stop. …\n"


@pytest.mark.parametrize(
    "data",
    [b"plain \xff words\n", b"{broken\n", b'{"a": 1}\n', b'{"type": []}\n', b"[1]\n", b"\n\nend"],
)
def test_a_line_that_is_no_event_stays_as_it_is(data: bytes) -> None:
    text = Transcript()

    assert text.feed(data) + text.finish() == data


def test_half_an_event_after_a_hole_is_not_shown() -> None:
    text, data = Transcript(), recorded("tool")

    text.feed(b'{"type":"message_upd')
    text.skip()

    assert text.feed(data[-5000:]).decode().startswith("The tool said: one\n")


async def test_logs_of_an_agent_are_shown_in_words_unless_raw(daemon: FakeDaemon) -> None:
    daemon.tasks = [Task(id="a", adapter="pi", attempt=2)]
    kept = [("b", "a", 1), ("c", "a", 2)]
    daemon.artifacts = [
        Artifact(id=f"art_{x * 10}", task_id=task, attempt=attempt, kind=ARTIFACT_KIND_PROMPT)
        for x, task, attempt in kept
    ]
    daemon.output = recorded("tool")

    words, raw, stderr, tail = await asyncio.gather(
        crew(daemon, "logs", RUN, "a", "-f"),
        crew(daemon, "logs", RUN, "a", "--raw"),
        crew(daemon, "logs", RUN, "a", "--stderr"),
        crew(daemon, "logs", RUN, "a", "--tail", "3", "-f"),
    )

    assert words.out == f"prompt: 35 bytes (crew artifacts art_cccccccccc)\n{TOOL}"
    assert raw.out.encode() == stderr.out.encode() == daemon.output
    assert tail.out == "  two\nThe tool said: one\ntwo\n"
    assert OUTPUT_STREAM_STDERR in {each.stream for each in daemon.requests("ReadOutput")}


async def test_the_last_lines_of_an_agent_are_found_behind_much_that_says_nothing(
    daemon: FakeDaemon,
) -> None:
    daemon.tasks = [Task(id="a", adapter="pi")]
    daemon.chunk = 5000
    daemon.output = recorded("tool") + line("message_update", usage={}) * 2000

    done = await crew(daemon, "logs", RUN, "a", "--tail", "1")

    assert done.out == "two\n"
