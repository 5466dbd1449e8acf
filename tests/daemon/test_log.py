from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from crewd import log
from crewd.config import LogFormat, LogLevel


@pytest.fixture(autouse=True)
def _own_settings() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)


def test_a_line_of_the_log_is_an_event_with_its_fields() -> None:
    stream = io.StringIO()
    log.set_up(LogLevel.INFO, LogFormat.AUTO, stream)
    structlog.get_logger().info("task_dispatched", task_id="build", attempt=2)
    structlog.get_logger().debug("nobody_asked")
    (line,) = stream.getvalue().splitlines()
    entry = json.loads(line)
    assert list(entry) == ["time", "level", "event", "task_id", "attempt"]
    assert (entry["level"], entry["event"], entry["attempt"]) == ("info", "task_dispatched", 2)


def test_at_a_terminal_a_line_is_for_people() -> None:
    stream = io.StringIO()
    log.set_up(LogLevel.INFO, LogFormat.CONSOLE, stream)
    structlog.get_logger().warning("disk_low", free=12)
    assert "disk_low" in stream.getvalue()
    assert "free=12" in stream.getvalue()


def test_secrets_stay_out_of_the_log() -> None:
    stream = io.StringIO()
    log.set_up(LogLevel.INFO, LogFormat.JSON, stream)
    structlog.get_logger().info("call", token="crewt_abc", input_tokens=3)  # noqa: S106
    entry = json.loads(stream.getvalue())
    assert (entry["token"], entry["input_tokens"]) == ("***", 3)


def test_what_libraries_say_comes_into_the_same_log() -> None:
    stream = io.StringIO()
    log.set_up(LogLevel.INFO, LogFormat.JSON, stream)
    logging.getLogger("asyncio").error("slow %s", "callback")
    entry = json.loads(stream.getvalue())
    assert (entry["level"], entry["event"]) == ("error", "library_message")
    assert (entry["logger"], entry["message"]) == ("asyncio", "slow callback")
