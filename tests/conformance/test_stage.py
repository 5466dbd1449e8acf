"""The stage leaves nothing behind, however it is left."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.stage_process import StageProcess

WRONG: list[tuple[dict[str, object], str]] = [
    ({"stage": "write", "path": "/tmp/x"}, "not of this scenario"),  # noqa: S108
    ({"stage": "remove", "path": "../../x"}, "not of this scenario"),
    ({"stage": "dance"}, "there is no step 'dance'"),
    ({"stage": "kill"}, "has started none"),
    ({"stage": "script", "answers": {"RunService/Fly": []}}, "no such method"),
    ({"play": "x"}, "stage: text is expected"),
]


@pytest.fixture
def stage() -> Iterator[StageProcess]:
    process = StageProcess()
    yield process
    process.close()


def daemon_of(state_dir: Path) -> int:
    """Give the pid of the daemon that says it serves."""
    return int((state_dir / "daemon.json").read_text().partition('"pid": ')[2].partition(",")[0])


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("how", ["closed", "terminated"])
def test_in_mid_step_it_ends_everything(stage: StageProcess, how: str) -> None:
    home = Path(stage.do({"stage": "begin"})["vars"]["home"])
    shared = Path(stage.do({"stage": "start"})["vars"]["state_dir"])
    own = Path(stage.do({"stage": "start", "own": True})["vars"]["state_dir"])
    daemons = [daemon_of(shared), daemon_of(own)]
    assert not any(map(is_gone, daemons))
    stage.tell({"stage": "wait_file", "path": "never"})
    if how == "terminated":
        os.kill(stage.pid, signal.SIGTERM)
        assert stage.wait() == 0
    else:
        assert stage.close() == 0
    assert all(map(is_gone, daemons))
    assert not home.exists()
    assert not shared.exists()


def test_each_scenario_has_a_place_of_its_own_that_ends_with_it(stage: StageProcess) -> None:
    first = Path(stage.do({"stage": "begin"})["vars"]["dir"])
    stage.do({"stage": "write", "path": f"{first}/a/b", "text": "x", "mode": "640"})
    assert (first / "a" / "b").stat().st_mode & 0o777 == 0o640
    second = Path(stage.do({"stage": "begin"})["vars"]["dir"])
    assert not first.exists()
    assert list(second.iterdir()) == []
    stage.do({"stage": "end"})
    assert not second.exists()


def test_a_step_that_cannot_be_done_is_told_and_ends_nothing(stage: StageProcess) -> None:
    stage.do({"stage": "begin"})
    for step, said in WRONG:
        with pytest.raises(AssertionError, match=said):
            stage.do(step)
    assert stage.do({"stage": "repeat", "text": "ab", "times": 2})["vars"] == {"repeated": "abab"}
