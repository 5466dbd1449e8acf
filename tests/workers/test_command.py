from __future__ import annotations

import signal

import pytest

from crewd.core.model import Result
from crewd.core.reports import Verdict
from crewd.core.words import Cause, Outcome
from crewd.workers.adapter import Exit
from crewd.workers.registry import adapter_for


def judge(exit_code: int | None, number: int | None = None, stderr: str = "") -> Verdict:
    adapter = adapter_for("command")
    ended = Exit(exit_code=exit_code, signal=number, stdout_tail="out\n", stderr_tail=stderr)
    return adapter.end(adapter.initial(), ended)


def test_exit_zero_completes_with_the_end_of_stdout() -> None:
    assert judge(0, stderr="a warning") == Verdict(
        outcome=Outcome.COMPLETED, result=Result(text="out\n")
    )


def test_a_cut_tail_is_a_truncated_result() -> None:
    adapter = adapter_for("command")
    ended = Exit(exit_code=0, signal=None, stdout_tail="end", tail_truncated=True)

    assert adapter.end(None, ended).result == Result(text="end", truncated=True)


@pytest.mark.parametrize(
    ("exit_code", "number", "stderr", "cause", "message"),
    [
        (3, None, "", Cause.EXIT, "exited with code 3"),
        (3, None, "first\nlast\n \n", Cause.EXIT, "exited with code 3: last"),
        (1, None, "\x1b[31mred\x1b[0m\n", Cause.EXIT, "exited with code 1: red"),
        (1, None, "x" * 900, Cause.EXIT, "exited with code 1: " + "x" * 500),
        (126, None, "", Cause.EXIT, "exited with code 126"),
        (127, None, "sh: foo: not found", Cause.EXIT, "exited with code 127: sh: foo: not found"),
        (None, signal.SIGSEGV, "", Cause.SIGNAL, "killed by SIGSEGV"),
        (None, 60, "", Cause.SIGNAL, "killed by signal 60"),
        (None, None, "", Cause.EXIT, "ended without an exit code"),
    ],
)
def test_any_other_end_is_a_failure_worth_another_try(
    exit_code: int | None, number: int | None, stderr: str, cause: Cause, message: str
) -> None:
    assert judge(exit_code, number, stderr) == Verdict(
        outcome=Outcome.FAILED, cause=cause, message=message, retryable=True
    )


def test_a_full_disk_is_named_and_not_tried_again() -> None:
    verdict = judge(1, stderr="cp: error writing 'a': No space left on device\n")

    assert (verdict.cause, verdict.retryable) == (Cause.DISK, False)


def test_only_adapters_with_a_process_are_found() -> None:
    with pytest.raises(LookupError):
        adapter_for("scaffold")
