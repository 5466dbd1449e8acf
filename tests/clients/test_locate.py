from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from crewd_client.locate import (
    DaemonFile,
    LocateError,
    default_socket,
    explain,
    find,
    make_socket_dir,
    private_dir_problem,
    state_dir,
)


def a_daemon(directory: Path, *, socket: str = "/run/s.sock", token_file: str = "") -> DaemonFile:
    return DaemonFile(1, "i", "s", 7, "0.1", socket, token_file, str(directory))


@pytest.mark.parametrize(
    ("env", "override", "expected"),
    [
        ({"HOME": "/h"}, None, "/h/.local/state/crewd"),
        ({"HOME": "/h", "XDG_STATE_HOME": "/x"}, None, "/x/crewd"),
        ({"HOME": "/h", "XDG_STATE_HOME": "not/absolute"}, None, "/h/.local/state/crewd"),
        ({"HOME": "/h", "XDG_STATE_HOME": "/x", "CREWD_STATE_DIR": "/c"}, None, "/c"),
        ({"HOME": "/h", "CREWD_STATE_DIR": ""}, None, "/h/.local/state/crewd"),
        ({"HOME": "/h", "CREWD_STATE_DIR": "~/c"}, None, "/h/c"),
        ({"HOME": "/h", "CREWD_STATE_DIR": "/c"}, "/o", "/o"),
        ({"HOME": "/h"}, "/o/../p", "/p"),
    ],
)
def test_the_state_directory_is_the_first_that_is_named(
    env: dict[str, str], override: str | None, expected: str
) -> None:
    assert state_dir(env, override) == Path(expected)


def test_only_the_default_state_directory_has_the_plain_socket(tmp_path: Path) -> None:
    env = {"HOME": "/h", "XDG_RUNTIME_DIR": str(tmp_path)}

    assert default_socket(state_dir(env), env) == tmp_path / "crewd" / "crewd.sock"
    assert default_socket(Path("/other"), env) == Path("/other/crewd.sock")


def test_without_a_runtime_directory_the_socket_is_in_the_state_directory() -> None:
    for env in ({"HOME": "/h"}, {"HOME": "/h", "XDG_RUNTIME_DIR": "/is/not/there"}):
        assert default_socket(state_dir(env), env) == Path("/h/.local/state/crewd/crewd.sock")


def test_a_socket_path_over_100_bytes_is_replaced_by_a_short_one() -> None:
    fits = Path("/" + "d" * 88)
    too_long = Path("/" + "é" * 45)
    name = hashlib.sha256(os.fsencode(too_long)).hexdigest()[:12] + ".sock"
    private = f"crewd-{os.getuid()}"

    assert default_socket(fits, {}) == fits / "crewd.sock"
    short = Path("/srv")
    assert default_socket(too_long, {"XDG_RUNTIME_DIR": "/"}) == Path("/crewd", name)
    assert default_socket(too_long, {"TMPDIR": str(short)}) == short / private / name
    assert default_socket(too_long, {"TMPDIR": "/" + "t" * 90}).parts[-2:] == (private, name)


def test_the_daemon_file_names_the_socket_unless_one_is_given(tmp_path: Path) -> None:
    (tmp_path / "daemon.json").write_text(a_daemon(tmp_path).text())

    found = find({}, state_dir=tmp_path)
    by_env = find({"CREWD_SOCKET": "/env.sock"}, state_dir=tmp_path)
    by_option = find({"CREWD_SOCKET": "/env.sock"}, state_dir=tmp_path, socket="/option.sock")

    assert (found.socket, found.socket_source) == (Path("/run/s.sock"), "daemon.json")
    assert (by_env.socket, by_env.socket_source) == (Path("/env.sock"), "CREWD_SOCKET")
    assert (by_option.socket, by_option.socket_source) == (Path("/option.sock"), "--socket")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is ignored"),
        ("[]", "not a JSON object"),
        ('{"protocol": "1"}', "protocol: int expected"),
        (a_daemon(Path("/another")).text(), "it is about /another"),
    ],
)
def test_a_daemon_file_that_is_no_use_is_told_and_ignored(
    tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / "daemon.json").write_text(text)

    found = find({}, state_dir=tmp_path)

    assert found.daemon is None
    assert found.socket == tmp_path / "crewd.sock"
    assert problem in found.notes[0]


def test_the_daemon_file_survives_keys_of_a_later_version(tmp_path: Path) -> None:
    daemon = a_daemon(tmp_path)

    assert DaemonFile.parse(daemon.text().replace("{", '{"later": 1,', 1)) == daemon


def test_the_token_is_the_first_that_is_named(tmp_path: Path) -> None:
    for name in ("token", "a", "b"):
        (tmp_path / name).write_text(f"{name}\n")
    env = {"CREWD_TOKEN_FILE": str(tmp_path / "a")}

    assert find({}, state_dir=tmp_path).token == "token"  # noqa: S105
    (tmp_path / "daemon.json").write_text(a_daemon(tmp_path, token_file=f"{tmp_path}/b").text())
    assert find({}, state_dir=tmp_path).token == "b"  # noqa: S105
    assert find(env, state_dir=tmp_path).token == "a"  # noqa: S105
    assert find(env | {"CREWD_TOKEN": "t"}, state_dir=tmp_path).token == "t"  # noqa: S105


def test_a_task_token_is_used_alone(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("operator")

    found = find({"CREWD_TASK_TOKEN": "task", "CREWD_TOKEN": "operator"}, state_dir=tmp_path)

    assert (found.token, found.token_source, found.task_token) == ("task", "CREWD_TASK_TOKEN", True)


def test_a_missing_token_file_is_told(tmp_path: Path) -> None:
    found = find({}, state_dir=tmp_path)

    assert found.token is None
    assert f"{tmp_path}/token is not there" in found.notes[0]


def test_a_named_socket_alone_may_be_that_of_any_state_directory(tmp_path: Path) -> None:
    other = "/somewhere/else"

    assert not find({"HOME": str(tmp_path)}).is_served_by(other)
    assert find({"HOME": str(tmp_path), "CREWD_SOCKET": "/s"}).is_served_by(other)
    assert not find({"CREWD_SOCKET": "/s"}, state_dir=tmp_path).is_served_by(other)
    assert find({"CREWD_SOCKET": "/s"}, state_dir=tmp_path).is_served_by(f"{tmp_path}/")


def test_symbolic_links_lead_to_the_same_place(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)

    assert state_dir({}, link) == state_dir({}, real)
    assert default_socket(link, {}) == real / "crewd.sock"


def test_a_directory_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "d"
    make_socket_dir(directory / "s")
    assert directory.stat().st_mode & 0o777 == 0o700
    assert private_dir_problem(directory) is None

    directory.chmod(0o770)
    with pytest.raises(LocateError, match="written by others"):
        make_socket_dir(directory / "s")


def test_the_explanation_names_what_decided(tmp_path: Path) -> None:
    lines = explain(find({"CREWD_SOCKET": "/s", "CREWD_STATE_DIR": str(tmp_path)}))

    assert lines[:2] == [
        f"state directory: {tmp_path}  (CREWD_STATE_DIR)",
        "socket: /s  (CREWD_SOCKET)",
    ]
