from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crewd.runtime.jobs import JobKey
from crewd.runtime.tokens import TaskTokens

TOKENS = TaskTokens(b"key of one state directory")
JOB = JobKey("run_aaaaaaaaaa", "build_all", 2)
NAMES = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,63}", fullmatch=True)


@given(NAMES, NAMES, st.integers(1, 10**6))
def test_a_token_names_its_attempt_and_no_other(run: str, task: str, number: int) -> None:
    job = JobKey(run, task, number)
    assert TOKENS.read(TOKENS.issue(job)) == job


def test_a_token_is_one_word_of_characters_that_go_anywhere() -> None:
    assert re.fullmatch(r"crewt_[A-Za-z0-9_-]+", TOKENS.issue(JOB))


def test_the_same_key_makes_the_same_token_and_another_key_another() -> None:
    assert TaskTokens(b"key of one state directory").issue(JOB) == TOKENS.issue(JOB)
    assert TaskTokens(b"another").read(TOKENS.issue(JOB)) is None


@pytest.mark.parametrize("attempt", [1, 3, 22])
def test_a_proof_of_one_attempt_is_none_of_another(attempt: int) -> None:
    proof = TOKENS.issue(JOB).rpartition("_")[2]
    other = TOKENS.issue(JOB._replace(number=attempt)).rpartition("_")[0]
    assert TOKENS.read(f"{other}_{proof}") is None


GOOD = TOKENS.issue(JOB)
NO_PROOF = "0" * 40


@pytest.mark.parametrize(
    "token",
    [
        GOOD[:-1] + ("0" if GOOD[-1] != "0" else "1"),
        GOOD[:-1],
        f"{GOOD}0",
        GOOD.upper(),
        GOOD.removeprefix("crewt_"),
        f"crewt_{GOOD}",
        GOOD.replace("_", "=_"),
        GOOD[:12],
        "crewt_",
        "crewt__",
        f"crewt_YS9iL2M_{NO_PROOF}",
        f"crewt_Ö_{NO_PROOF}",
        "",
    ],
)
def test_a_changed_token_is_none(token: str) -> None:
    assert TOKENS.read(token) is None
