from __future__ import annotations

from pathlib import Path

import pytest

from crewd.host.journal import Journal
from crewd.host.messages import Message, line


def an_exit(job: str, **fields: object) -> Message:
    return {"news": "exit", "job": job, "epoch": "old", "exit_code": 0, **fields}


def record_exit(journal: Journal, job: str) -> None:
    journal.exited(job, line(an_exit(job)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def test_it_tells_ended_jobs_from_lost_ones(path: Path) -> None:
    journal = Journal(path, "old")
    for job in ("ended", "lost", "forgotten"):
        journal.started(job)
    record_exit(journal, "ended")
    record_exit(journal, "forgotten")
    journal.forgotten("forgotten")
    journal.flush()

    later = Journal(path, "new")

    assert later.earlier_exits == {"ended": an_exit("ended")}
    assert later.lost == {"lost": "old"}


def test_what_is_not_acknowledged_is_carried_on(path: Path) -> None:
    journal = Journal(path, "old")
    journal.started("lost")
    record_exit(journal, "ended")
    journal.flush()
    Journal(path, "second").close()

    third = Journal(path, "third")

    assert third.earlier_exits == {"ended": an_exit("ended")}
    assert third.lost == {"lost": "old"}


def test_one_turn_is_one_write(path: Path) -> None:
    journal = Journal(path, "old")
    journal.started("a")
    journal.started("b")
    record_exit(journal, "a")
    assert path.read_bytes() == b""

    journal.flush()

    assert path.read_bytes().count(b"\n") == 2


def test_a_line_cut_by_a_death_is_cut_off(path: Path) -> None:
    journal = Journal(path, "old")
    record_exit(journal, "whole")
    record_exit(journal, "torn")
    journal.flush()
    path.write_bytes(path.read_bytes()[:-5])

    later = Journal(path, "new")
    record_exit(later, "next")
    later.flush()

    assert Journal(path, "newest").earlier_exits.keys() == {"whole", "next"}


@pytest.mark.parametrize("damage", [b"\xff\x00\n", b"{}\n", b"[1]\n", b'{"started": 5}\n'])
def test_a_damaged_line_costs_only_itself(path: Path, damage: bytes) -> None:
    path.write_bytes(line(an_exit("first")) + damage + line(an_exit("second")))

    assert Journal(path, "new").earlier_exits.keys() == {"first", "second"}


def test_a_job_can_be_forgotten_and_started_again_in_one_turn(path: Path) -> None:
    journal = Journal(path, "old")
    record_exit(journal, "job")
    journal.forgotten("job")
    journal.started("job")
    journal.flush()

    assert Journal(path, "new").lost == {"job": "old"}


def test_it_does_not_grow_with_what_is_acknowledged(path: Path) -> None:
    journal = Journal(path, "old")
    record_exit(journal, "kept")
    for number in range(12_000):
        journal.started(f"job {number}")
        record_exit(journal, f"job {number}")
        journal.forgotten(f"job {number}")
        journal.flush()

    assert path.stat().st_size < 3 << 19
    assert Journal(path, "new").earlier_exits.keys() == {"kept"}


def test_it_goes_when_everything_is_acknowledged(path: Path) -> None:
    journal = Journal(path, "old")
    record_exit(journal, "job")
    journal.forgotten("job")
    journal.flush()

    journal.close()

    assert not path.exists()
