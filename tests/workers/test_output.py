from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crewd.core.model import Artifact, Attempt, Result
from crewd.core.reports import (
    ArtifactGiven,
    ArtifactKept,
    Asked,
    Message,
    Report,
    ResultGiven,
    Verdict,
    Warned,
)
from crewd.core.words import Cause, Outcome
from crewd.workers.lines import MAX_LINE, Stream
from crewd.workers.output import STEP_BYTES, OutputReader, Step
from crewd.workers.transcript import Transcript

OUT, ERR = Stream.STDOUT, Stream.STDERR
KIB = 1024
MIB = 1024 * KIB
ASK = b'{"type":"ask","id":"q1","question":"Go on?"}\n'
DONE = b'{"type":"result","outcome":"completed","text":"all good"}\n'
PARTS = st.sampled_from(
    [b"plain\n", b"\r\n", b"no end", b'{"type":"message","text":"hi"}\n', ASK, DONE, b"\xff\x00\n"]
)


class Worker:
    """One attempt: its spool, its row, its transcript."""

    def __init__(self, root: Path, adapter: str, stdout: bytes = b"", stderr: bytes = b"") -> None:
        self.root = root
        self.row = Attempt(run_id="run_a", task_id="t", number=1, adapter=adapter)
        self.spool = {OUT: stdout, ERR: stderr}
        self.reports: list[Report] = []
        self.kept: list[ArtifactGiven] = []

    def reader(self) -> OutputReader:
        numbers = count(1)
        return OutputReader(
            self.row,
            Transcript.of(self.root, self.row),
            self.read,
            lambda: f"ask_{next(numbers)}",
            self.keep,
        )

    def keep(self, given: ArtifactGiven) -> Artifact:
        self.kept.append(given)
        number = len(self.kept)
        return Artifact(id=f"art_{number}", run_id=self.row.run_id, name=given.name)

    def read(self, stream: Stream, offset: int, limit: int) -> bytes:
        return self.spool[stream][offset : offset + limit]

    def commit(self, step: Step) -> None:
        row = self.row
        row.stdout_offset, row.stderr_offset = step.stdout_offset, step.stderr_offset
        row.stdout_bytes, row.stderr_bytes = step.stdout_bytes, step.stderr_bytes
        row.adapter_state = step.adapter_state
        for report in step.reports:
            self.reports.append(report)
            if isinstance(report, ResultGiven):
                row.result = report.result

    def run(self, reader: OutputReader | None = None) -> OutputReader:
        """Read everything, committing each step."""
        reader = reader or self.reader()
        more = True
        while more:
            step = reader.step(len(self.spool[OUT]), len(self.spool[ERR]))
            self.commit(step)
            more = step.more
        self.commit(reader.flush())
        return reader

    def transcript(self, stream: Stream) -> bytes:
        kept = Transcript.of(self.root, self.row)
        return kept.tail(stream, kept.length(stream))[0]


def test_a_command_without_output_moves_nothing(tmp_path: Path) -> None:
    worker = Worker(tmp_path / "transcripts", "command")
    reader = worker.reader()

    assert not reader.step(0, 0).moved
    assert not reader.flush().moved
    assert reader.finish(0, None) == Verdict(outcome=Outcome.COMPLETED, result=Result())
    assert list(tmp_path.iterdir()) == []


def test_a_command_is_judged_by_its_exit_and_its_output(tmp_path: Path) -> None:
    worker = Worker(tmp_path, "command", b"one\ntwo", b"careful\n")

    reader = worker.run()

    assert reader.finish(0, None).result == Result(text="one\ntwo")
    assert reader.finish(4, None).message == "exited with code 4: careful"
    assert worker.row.adapter_state == "{}"
    assert (worker.transcript(OUT), worker.transcript(ERR)) == (b"one\ntwo", b"careful\n")


def test_a_result_is_the_end_of_a_long_output(tmp_path: Path) -> None:
    worker = Worker(tmp_path, "command", b"x" * 100_000 + b"end\n")

    result = worker.run().finish(0, None).result

    assert result == Result(text=("x" * 100_000 + "end\n")[-64 * 1024 :], truncated=True)


def test_a_partial_line_waits_for_its_end(tmp_path: Path) -> None:
    worker = Worker(tmp_path, "jsonl", ASK + b'{"type":"mess')
    reader = worker.reader()

    step = reader.step(len(worker.spool[OUT]), 0)

    assert [type(r) for r in step.reports] == [Asked]
    assert step.stdout_offset == step.stdout_bytes == len(ASK)
    assert not step.more
    assert not reader.step(len(worker.spool[OUT]), 0).moved


def test_the_last_line_counts_without_a_line_end(tmp_path: Path) -> None:
    worker = Worker(tmp_path, "jsonl", DONE.rstrip())

    worker.run()

    assert [r.result.text for r in worker.reports if isinstance(r, ResultGiven)] == ["all good"]


def test_a_result_too_long_for_a_row_is_kept_as_an_artifact(tmp_path: Path) -> None:
    text = "é" * 40 * KIB
    line = json.dumps({"type": "result", "outcome": "completed", "text": text})
    worker = Worker(tmp_path, "jsonl", line.encode() + b"\n")

    worker.run()

    kept, given = worker.reports
    assert isinstance(kept, ArtifactKept)
    assert isinstance(given, ResultGiven)
    assert worker.kept[0].text == text
    assert given.result == Result(text="é" * 32 * KIB, truncated=True, artifact_id="art_1")


def test_the_same_question_is_asked_once_across_a_restart(tmp_path: Path) -> None:
    worker = Worker(tmp_path, "jsonl", ASK)
    worker.run()
    worker.spool[OUT] += ASK + b'{"type":"message","text":"hm"}\n'

    worker.run()

    assert [type(r) for r in worker.reports] == [Asked, Message]


def test_one_step_reads_no_more_than_its_share(tmp_path: Path) -> None:
    worker = Worker(tmp_path, "command", b"line\n" * MIB)

    step = worker.reader().step(len(worker.spool[OUT]), 0)

    assert step.more
    assert STEP_BYTES - 5 < step.stdout_offset <= STEP_BYTES


def test_a_spool_that_ends_early_is_not_taken_for_the_end(tmp_path: Path) -> None:
    worker = Worker(tmp_path, "command", b"abc\n")
    reader = worker.reader()
    reader.step(4, 0)

    with pytest.raises(EOFError):
        reader.step(10, 0)


@given(st.lists(PARTS, max_size=20), st.lists(st.integers(0, 300), max_size=20), st.data())
def test_a_crash_at_any_step_leaves_the_same_transcript_and_reports(
    parts: list[bytes], ends: list[int], data: st.DataObject
) -> None:
    stdout = b"".join(parts)
    with TemporaryDirectory() as calm_root, TemporaryDirectory() as root:
        calm = Worker(Path(calm_root), "jsonl", stdout, stdout[::-1])
        verdict = calm.run().finish(0, None)

        worker = Worker(Path(root), "jsonl", stdout, stdout[::-1])
        crashing(worker, sorted(min(e, len(stdout)) for e in ends), data.draw)

        assert worker.run().finish(0, None) == verdict
        assert worker.reports == calm.reports
        assert worker.transcript(OUT) == calm.transcript(OUT) == stdout
        assert worker.transcript(ERR) == calm.transcript(ERR) == stdout[::-1]


def crashing(
    worker: Worker, ends: list[int], draw: Callable[[st.SearchStrategy[bool]], bool]
) -> None:
    """Read up to each end in turn; now and then the daemon dies before or after its commit."""
    reader = worker.reader()
    for end in ends:
        step = reader.step(end, end)
        if draw(st.booleans()):
            worker.commit(step)
            if draw(st.booleans()):
                continue
        reader = worker.reader()


class Endless(Worker):
    """A worker whose first line is very long, then hands in."""

    LENGTH = 50 * MIB

    def read(self, stream: Stream, offset: int, limit: int) -> bytes:
        if stream is ERR:
            return b""
        line = b"x" * max(0, min(limit, self.LENGTH - offset))
        after = b"\n" + DONE
        start = offset + len(line) - self.LENGTH
        return line + after[start : start + limit - len(line)] if start >= 0 else line


def test_a_line_of_50_mb_passes_with_flat_memory_and_restarts(tmp_path: Path) -> None:
    worker = Endless(tmp_path, "jsonl")
    end = Endless.LENGTH + 1 + len(DONE)
    tracemalloc.start()
    reader, steps, more = worker.reader(), 0, True
    while more:
        step = reader.step(end, 0)
        worker.commit(step)
        more, steps = step.more, steps + 1
        if steps % 60 == 0:
            assert json.loads(worker.row.adapter_state)["skipping"] == ["stdout"]
            reader = worker.reader()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 5 * MAX_LINE
    assert 0.95 * end < worker.row.stdout_bytes < end
    assert [type(r) for r in worker.reports] == [Warned, ResultGiven]
    assert json.loads(worker.row.adapter_state).get("skipping") is None


def test_no_result_is_a_case_for_a_person(tmp_path: Path) -> None:
    verdict = Worker(tmp_path, "jsonl", b"forgot\n").run().finish(0, None)

    assert (verdict.outcome, verdict.cause) == (Outcome.NEEDS_ATTENTION, Cause.NO_RESULT)
