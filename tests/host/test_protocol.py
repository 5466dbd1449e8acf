from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import crewd
from crewd.host.protocol import VERSION, make_private, secret, spool_name, valid_job_key


def test_the_version_is_that_of_the_project() -> None:
    assert crewd.__version__ == VERSION


@pytest.mark.parametrize("job", ["r/t/1", "run_1/täsk 1/2", "a/b/c/d"])
def test_a_job_key_names_run_task_and_attempt(job: str) -> None:
    assert valid_job_key(job)


def test_no_two_jobs_share_a_spool_name() -> None:
    jobs = ["a/b/1", "a/b%2f1/1", "a%2fb/1/1", "a/b.1/1", "a/B/1", "a/" + "b" * 400 + "/1"]
    jobs += ["a/" + "b" * 400 + "/2", "a/" + "b" * 401 + "/1"]

    names = {spool_name(job) for job in jobs}

    assert len(names) == len(jobs)
    assert all(len(name) < 220 and "/" not in name and "." not in name for name in names)


def test_whoever_asks_for_a_secret_gets_the_same(tmp_path: Path) -> None:
    path = tmp_path / "key"

    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(secret, [path] * 32))

    assert found == {path.read_text()}
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["key"]


def test_a_directory_that_others_can_enter_is_closed(tmp_path: Path) -> None:
    directory = tmp_path / "host"
    directory.mkdir(mode=0o755)

    make_private(directory)

    assert directory.stat().st_mode & 0o777 == 0o700


def test_a_link_is_no_private_directory(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    with pytest.raises(PermissionError, match="not a directory of this user"):
        make_private(tmp_path / "link")
