from __future__ import annotations

import json
import socket as sockets
from dataclasses import replace
from pathlib import Path

import pytest

from crewd.instance import (
    Holder,
    announced,
    holder,
    lock_socket,
    lock_state,
    operator_token,
    read_token,
    task_key,
    try_lock,
)
from crewd.refusal import Refusal
from crewd_client.locate import DaemonFile

ME = Holder(pid=4711, version="1.2.3", socket="/run/here.sock", state_dir="/state")
DAEMON = DaemonFile(
    protocol=1,
    instance_id="i1",
    store_id="s1",
    pid=4711,
    version="1.2.3",
    socket="/run/here.sock",
    token_file="/state/token",  # noqa: S106 - a path
    state_dir="/state",
)


def test_a_lock_tells_who_holds_it_for_as_long_as_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert holder(path) is None
    lock = lock_state(path, ME)
    assert holder(path) == ME
    assert path.stat().st_mode & 0o777 == 0o600
    lock.release()
    assert holder(path) is None


def test_a_second_daemon_is_refused_and_told_pid_version_and_socket(tmp_path: Path) -> None:
    lock = lock_state(tmp_path / "lock", ME)
    with pytest.raises(Refusal) as refused:
        lock_state(tmp_path / "lock", replace(ME, pid=1))
    assert refused.value.message == (
        "a daemon runs already for /state: pid 4711, version 1.2.3, socket /run/here.sock"
    )
    assert "crewd stop" in refused.value.hint
    assert holder(tmp_path / "lock") == ME
    lock.release()


def test_who_did_not_sign_still_holds_the_lock(tmp_path: Path) -> None:
    lock = try_lock(tmp_path / "lock")
    assert lock is not None
    found = holder(tmp_path / "lock")
    assert found is not None
    assert found.pid == 0
    lock.release()


def test_a_lock_behind_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refusal, match="cannot lock"):
        try_lock(tmp_path / "lock")
    assert not (tmp_path / "elsewhere").exists()


def test_a_socket_in_use_is_refused_and_the_state_directory_that_uses_it_named(
    tmp_path: Path,
) -> None:
    socket = tmp_path / "run" / "crewd.sock"
    lock = lock_socket(socket, ME)
    with pytest.raises(Refusal, match=r"another state directory \(/state\).*pid 4711"):
        lock_socket(socket, replace(ME, pid=1))
    lock.release()


def test_the_socket_of_a_killed_daemon_is_cleared_away(tmp_path: Path) -> None:
    socket = tmp_path / "crewd.sock"
    with sockets.socket(sockets.AF_UNIX) as killed:
        killed.bind(str(socket))
    lock_socket(socket, ME).release()
    assert not socket.exists()


def test_a_socket_at_which_another_program_listens_is_left_alone(tmp_path: Path) -> None:
    socket = tmp_path / "crewd.sock"
    with sockets.socket(sockets.AF_UNIX) as other:
        other.bind(str(socket))
        other.listen()
        with pytest.raises(Refusal, match="another program listens"):
            lock_socket(socket, ME)
        assert socket.exists()
    assert holder(tmp_path / "crewd.sock.lock") is None


def test_a_file_in_the_place_of_the_socket_is_left_alone(tmp_path: Path) -> None:
    socket = tmp_path / "crewd.sock"
    socket.write_text("mine")
    with pytest.raises(Refusal, match="no socket of ours"):
        lock_socket(socket, ME)
    assert socket.read_text() == "mine"


def test_a_socket_path_that_is_too_long_is_refused_before_anything_is_made(
    tmp_path: Path,
) -> None:
    with pytest.raises(Refusal, match=r"too long: .* at most 100") as refused:
        lock_socket(tmp_path / ("x" * 100) / "crewd.sock", ME)
    assert "CREWD_SOCKET" in refused.value.hint
    assert not list(tmp_path.iterdir())


def test_a_socket_in_a_directory_that_others_can_write_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(Refusal, match="can be written by others"):
        lock_socket(shared / "crewd.sock", ME)


def test_daemon_json_has_exactly_its_keys_and_lasts_as_long_as_the_daemon(tmp_path: Path) -> None:
    path = tmp_path / "daemon.json"
    with announced(path, DAEMON):
        assert list(json.loads(path.read_text())) == [
            "protocol",
            "instance_id",
            "store_id",
            "pid",
            "version",
            "socket",
            "token_file",
            "state_dir",
        ]
        assert path.stat().st_mode & 0o777 == 0o600
    assert not path.exists()


def test_the_daemon_json_of_a_successor_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "daemon.json"
    with announced(path, DAEMON):
        path.write_text(replace(DAEMON, instance_id="i2").text())
    assert DaemonFile.parse(path.read_text()).instance_id == "i2"


def test_the_token_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "token"
    token = operator_token(path)
    assert len(token) >= 43
    assert operator_token(path) == token
    assert path.stat().st_mode & 0o777 == 0o600


def test_to_read_a_token_that_is_gone_makes_none(tmp_path: Path) -> None:
    path = tmp_path / "token"
    with pytest.raises(Refusal, match="is gone"):
        read_token(path)
    assert not path.exists()


def test_the_key_of_workers_tokens_is_made_once_and_is_no_token(tmp_path: Path) -> None:
    path = tmp_path / "task.key"
    key = task_key(path)
    assert len(key) >= 43
    assert (task_key(path), path.stat().st_mode & 0o777) == (key, 0o600)
    assert task_key(tmp_path / "other.key") != key
    path.chmod(0o644)
    with pytest.raises(Refusal, match="others can read or change the key"):
        task_key(path)


def test_a_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    operator_token(path)
    path.chmod(0o644)
    with pytest.raises(Refusal, match="others can read") as refused:
        operator_token(path)
    assert f"rm {path}" in refused.value.hint
