"""Options that several commands share, and how they print."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import click

from crewd.refusal import Exit, Refusal
from crewd_client import locate
from crewd_client.locate import LocateError, Location

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _own_or_global(ctx: click.Context, _: click.Parameter, value: str | None) -> str | None:
    return ctx.obj if value is None else value


def state_dir_option(function: _Function) -> _Function:
    """Accept --state-dir after the command too."""
    return click.option(
        "--state-dir",
        metavar="DIR",
        callback=_own_or_global,
        help="The state directory. Default: CREWD_STATE_DIR, else ~/.local/state/crewd.",
    )(function)


def json_option(function: _Function) -> _Function:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(function)


def find(state_dir: str | None) -> Location:
    """Find the daemon as every client does, or refuse."""
    try:
        return locate.find(os.environ, state_dir=state_dir)
    except LocateError as error:
        raise Refusal(
            f"the daemon's socket is not at a safe place: {error}",
            hint="set XDG_RUNTIME_DIR, or name the socket with CREWD_SOCKET",
        ) from error


def no_daemon(location: Location) -> Refusal:
    return Refusal(
        f"no daemon runs for {location.state_dir}",
        hint="start it: crewd ensure",
        exit_code=Exit.NO_DAEMON,
    )


def echo_json(value: object) -> None:
    click.echo(json.dumps(value, ensure_ascii=False))


def span(_: click.Context, __: click.Parameter, value: str | None) -> timedelta | None:
    """Read a time as people write it: `90`, `1.5s`, `10m`, `2h`."""
    if value is None:
        return None
    found = _SPAN.fullmatch(value)
    if found is None:
        raise click.BadParameter(f"{value!r} is no time; write it as 90, 1.5s, 10m or 2h")
    return timedelta(seconds=float(found[1]) * _SECONDS[found[2]])


_SPAN = re.compile(r"(\d+(?:\.\d+)?)([smh]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
