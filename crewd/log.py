"""The daemon's log: event names with fields; at a terminal for people, else JSON lines."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from crewd.config import LogFormat, LogLevel
from crewd.core.redaction.redactor import redact
from crewd.core.redaction.spans import MASK

_LEVELS = {
    LogLevel.DEBUG: logging.DEBUG,
    LogLevel.INFO: logging.INFO,
    LogLevel.WARNING: logging.WARNING,
    LogLevel.ERROR: logging.ERROR,
}
_SECRET_FIELDS = frozenset({"token", "authorization", "secret", "password", "api_key", "env"})


def set_up(level: LogLevel, form: LogFormat, stream: TextIO) -> None:
    """Send what every logger of the process says, libraries' too, to one stream."""
    at_terminal = form is LogFormat.CONSOLE or (form is LogFormat.AUTO and stream.isatty())
    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.processors.format_exc_info,
        _hide_secrets,
        _console(colours=stream.isatty()) if at_terminal else _json_line,
    ]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )
    logging.captureWarnings(True)
    root = logging.getLogger()
    root.handlers[:] = [_Forward()]
    root.setLevel(max(_LEVELS[level], logging.WARNING))


class _Forward(logging.Handler):
    """Takes what libraries say by way of `logging` into our log."""

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger()
        write: Callable[..., None] = log.error if record.levelno >= logging.ERROR else log.warning
        write(
            "library_message",
            logger=record.name,
            message=record.getMessage(),
            exc_info=record.exc_info or None,
        )


def _hide_secrets(_: WrappedLogger, __: str, fields: EventDict) -> EventDict:
    for name, value in fields.items():
        if name in _SECRET_FIELDS:
            fields[name] = MASK
        elif isinstance(value, str):
            fields[name] = redact(value)
    return fields


def _json_line(_: WrappedLogger, __: str, fields: EventDict) -> str:
    first = {name: fields.pop(name) for name in ("time", "level", "event")}
    return redact(json.dumps({**first, **fields}, default=str, ensure_ascii=False))


def _console(*, colours: bool) -> Processor:
    return structlog.dev.ConsoleRenderer(colors=colours, timestamp_key="time")
