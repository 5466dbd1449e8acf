"""What is left of a worker's secrets in its transcript, its reports and its row: nothing."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crewd.core.model import AskOption, Attempt, Result
from crewd.core.redaction.known import KnownSecrets
from crewd.core.redaction.masking import Masking
from crewd.core.reports import ArtifactGiven, Asked, Message, Report, ResultGiven, Verdict, Warned
from crewd.core.words import ArtifactKind, Outcome
from crewd.workers.environment import Environment
from crewd.workers.lines import Stream
from crewd.workers.output import OutputReader, Step
from crewd.workers.transcript import Transcript
from tests.support.places import a_place

KNOWN = "known-to-be-secret"
KEY = b"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQ==\n-----END PRIVATE KEY-----"
MASKING = Masking(KnownSecrets([KNOWN, "98765432"]))


class Worker:
    """One attempt with what it printed; each step is committed, and any may be the last one."""

    def __init__(self, root: Path, adapter: str, stdout: bytes) -> None:
        self.root = root
        self.row = Attempt(run_id="run_a", task_id="t", number=1, adapter=adapter)
        self.spool = stdout
        self.reports: list[Report] = []
        self.kept: list[ArtifactGiven] = []

    def reader(self) -> OutputReader:
        numbers = count(1)
        return OutputReader(
            self.row,
            Transcript.of(self.root, self.row),
            lambda stream, at, most: self.spool[at : at + most] if stream == "stdout" else b"",
            lambda: f"ask_{next(numbers)}",
            self.keep,
            masking=MASKING,
        )

    def keep(self, given: ArtifactGiven) -> Warned:
        self.kept.append(given)
        return Warned("refused", "full")

    def commit(self, step: Step) -> None:
        self.row.stdout_offset, self.row.stdout_bytes = step.stdout_offset, step.stdout_bytes
        self.row.adapter_state = step.adapter_state
        self.reports.extend(step.reports)

    def run(self, *stops: int) -> OutputReader:
        """Read up to each of these places, with a new reader after each, and then the rest."""
        for stop in stops:
            self.commit(self.reader().step(stop, 0))
        reader = self.reader()
        self.commit(reader.step(len(self.spool), 0))
        self.commit(reader.flush())
        return reader

    def transcript(self) -> bytes:
        return Transcript.of(self.root, self.row).tail(Stream.STDOUT, 1 << 20)[0]


def line(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"


@given(st.lists(st.integers(0, 150), max_size=4).map(sorted))
def test_a_transcript_is_the_same_wherever_a_reader_had_to_stop(stops: list[int]) -> None:
    output = b"first\n" + KEY + b"\nnext token=abc\n" + KEY[:50] + b"\n"
    with a_place() as root:
        worker = Worker(root, "command", output)
        worker.run(*stops)
        assert worker.transcript() == b"first\n***\nnext token=***\n***\n"


def test_binary_output_passes_unharmed(tmp_path: Path) -> None:
    data = bytes(range(256)) * 300 + b"\n\xff\xfe\n"
    worker = Worker(tmp_path, "command", data)
    worker.run()
    assert worker.transcript() == data


def test_reports_have_no_secrets_and_data_stays_json(tmp_path: Path) -> None:
    text = f"{KNOWN} password=x"
    option = {"label": f"use {KNOWN}"}
    output = (
        line(type="message", text=text)
        + line(type="artifact", name="a", text=text)
        + line(type="ask", id=f"q-{KNOWN}", question=text, options=[option])
        + line(type="result", outcome="completed", text=text, data={"n": 98765432, "token": 1})
    )
    worker = Worker(tmp_path, "jsonl", output)
    worker.run()
    message, refused, ask, result = worker.reports
    assert message == Message("*** password=***")
    assert isinstance(refused, Warned)
    assert [given.text for given in worker.kept] == ["*** password=***"]
    assert isinstance(ask, Asked)
    assert (ask.ref, ask.question) == (f"q-{KNOWN}", "*** password=***")
    assert ask.options == (AskOption(id="1", label="use ***"),)
    assert isinstance(result, ResultGiven)
    assert result.result.text == "*** password=***"
    assert json.loads(result.result.data_json) == {"n": "***", "token": "***"}
    assert KNOWN.encode() not in worker.transcript()


def test_the_row_and_the_verdict_have_no_secrets(tmp_path: Path) -> None:
    said = {"role": "assistant", "content": [{"type": "text", "text": f"it is {KNOWN}"}]}
    worker = Worker(tmp_path, "pi", line(type="message_end", message=said))
    worker.run()
    assert "it is ***" in worker.row.adapter_state
    assert KNOWN not in worker.row.adapter_state
    verdict = Verdict(outcome=Outcome.FAILED, message=KNOWN, result=Result(text="password=x"))
    masked = Verdict(outcome=Outcome.FAILED, message="***", result=Result(text="password=***"))
    assert MASKING.report(verdict) == masked


def test_what_an_adapter_remembers_keeps_its_ids() -> None:
    state = json.dumps({"asks": {"token-1": "api_key"}, "last": {"text": "token=x"}})
    shown = {"asks": {"token-1": "api_key"}, "last": {"text": "token=***"}}
    assert json.loads(MASKING.strings(state)) == shown


def test_a_long_result_is_masked_before_it_is_kept(tmp_path: Path) -> None:
    text = f"{'x' * 70_000} {KNOWN}"
    worker = Worker(tmp_path, "jsonl", line(type="result", outcome="completed", text=text))
    worker.run()
    (given_result,) = worker.kept
    assert given_result.kind is ArtifactKind.RESULT
    assert given_result.text == f"{'x' * 70_000} ***"


def test_the_output_of_a_command_is_a_result_without_secrets(tmp_path: Path) -> None:
    worker = Worker(tmp_path, "command", f"token={KNOWN}\n".encode() + KEY)
    assert worker.run().finish(0, None).result == Result(text="token=***\n***")


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("VAULT_ENTRY", "file-value", True),
        ("CERTS", "/etc/ssl/certs", False),
        ("GIVEN_TOKEN", "given-token", True),
        ("GIVEN_PLACE", "given-place", False),
        ("OFFERED_API_KEY", "offered-key", True),
        ("OFFERED_REGION", "offered-region", False),
        ("CREWD_TASK_TOKEN", "crewt_own", True),
        ("CREWD_RUN_ID", "run_of_it", False),
    ],
)
def test_the_secrets_of_an_environment(
    tmp_path: Path, name: str, value: str, *, secret: bool
) -> None:
    file = tmp_path / "env"
    file.touch(0o600)
    file.write_text("VAULT_ENTRY=file-value\nCERTS=/etc/ssl/certs\n")
    offered = {"OFFERED_API_KEY": "offered-key", "OFFERED_REGION": "offered-region"}
    found = Environment(offered, file).secrets(
        given={"GIVEN_TOKEN": "given-token", "GIVEN_PLACE": "given-place"},
        named=["VAULT_ENTRY", "CERTS", "MISSING"],
        offered=list(offered),
        own={"CREWD_TASK_TOKEN": "crewt_own", "CREWD_RUN_ID": "run_of_it"},
    )
    assert (value in found) is secret, name


def test_an_env_file_that_cannot_be_read_hides_no_other_secret(tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.touch(0o644)
    environment = Environment({"NAMED": "of-the-daemon"}, file)
    found = environment.secrets(given={"TOKEN": "given"}, named=["NAMED"], own={})
    assert set(found) == {"of-the-daemon", "given"}
