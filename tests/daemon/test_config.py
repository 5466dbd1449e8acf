from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from crewd.config import Config, HostMode, LogFormat, LogLevel, Options, read_config
from crewd.paths import StatePaths
from crewd.refusal import Exit, Refusal


def test_without_options_and_variables_there_are_defaults() -> None:
    state_dir = Path("/nobody/.local/state/crewd")
    assert read_config({"HOME": "/nobody"}, Options()) == Config(
        paths=StatePaths(state_dir),
        socket=state_dir / "crewd.sock",
        host=HostMode.AUTO,
        max_workers=max(16, 2 * (os.cpu_count() or 1)),
        heartbeat_interval=timedelta(seconds=15),
        log_level=LogLevel.INFO,
        log_format=LogFormat.AUTO,
    )


def test_an_option_comes_before_its_variable(tmp_path: Path) -> None:
    env = {
        "HOME": str(tmp_path),
        "CREWD_STATE_DIR": "/elsewhere",
        "CREWD_SOCKET": "/elsewhere.sock",
        "CREWD_MAX_WORKERS": "5",
    }
    options = Options(state_dir=str(tmp_path), socket="/s/x.sock", host="connect", max_workers=3)
    config = read_config(env, options)
    assert config.paths.root == tmp_path.resolve()
    assert config.socket == Path("/s/x.sock")
    assert config.host is HostMode.CONNECT
    assert config.max_workers == 3


def test_a_variable_comes_before_the_default(tmp_path: Path) -> None:
    env = {
        "HOME": str(tmp_path),
        "CREWD_MAX_WORKERS": "5",
        "CREWD_HEARTBEAT_INTERVAL": "0.5s",
        "CREWD_LOG_LEVEL": "DEBUG",
        "CREWD_LOG_FORMAT": "json",
    }
    config = read_config(env, Options())
    assert config.max_workers == 5
    assert config.heartbeat_interval == timedelta(seconds=0.5)
    assert config.log_level is LogLevel.DEBUG
    assert config.log_format is LogFormat.JSON


def test_the_socket_of_the_daemon_before_plays_no_part(tmp_path: Path) -> None:
    (tmp_path / "daemon.json").write_text("{}")
    config = read_config({"HOME": "/home", "CREWD_STATE_DIR": str(tmp_path)}, Options())
    assert config.socket == tmp_path.resolve() / "crewd.sock"


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("CREWD_MAX_WORKERS", "many", "a number from 1 to 4096"),
        ("CREWD_MAX_WORKERS", "0", "a number from 1 to 4096"),
        ("CREWD_HEARTBEAT_INTERVAL", "0s", 'as "15s"'),
        ("CREWD_HEARTBEAT_INTERVAL", "15", 'as "15s"'),
        ("CREWD_LOG_LEVEL", "loud", "debug, info, warning, error"),
        ("CREWD_LOG_FORMAT", "xml", "auto, console, json"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(name: str, value: str, allowed: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_config({"HOME": "/home", name: value}, Options())
    assert refused.value.message == f"{name} is {value!r}"
    assert allowed in refused.value.hint
    assert refused.value.exit_code is Exit.USAGE
