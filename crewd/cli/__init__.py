"""The `crewd` command: the daemon itself, and what its owner does with it.

Each command is a module of its own that is loaded when it is used: `crewd where` loads no gRPC.
"""

from __future__ import annotations

import json
import sys
import traceback
from importlib import import_module
from typing import NoReturn

import click

from crewd import __version__
from crewd.refusal import Exit, Refusal

_COMMANDS = (
    "serve",
    "host",
    "ensure",
    "service",
    "status",
    "doctor",
    "where",
    "token",
    "trust",
    "drain",
    "stop",
)


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"crewd.cli.{cmd_name}").command
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="crewd", message="%(prog)s %(version)s")
@click.option("--state-dir", metavar="DIR", help="Where the daemon keeps its things.")
@click.pass_context
def _crewd(ctx: click.Context, state_dir: str | None) -> None:
    """Run and manage the daemon that runs crews of agents. To work with it: `crew`."""
    ctx.obj = state_dir


def main() -> NoReturn:
    """Run the command that was typed and exit with its code."""
    try:
        code = _crewd.main(prog_name="crewd", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except Refusal as refusal:
        _show(refusal)
        code = refusal.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = Exit.INTERRUPTED
    except Exception:  # noqa: BLE001 - the top: a bug of ours has an exit code of its own
        traceback.print_exc()
        sys.stderr.write("error: this is a bug in crewd, please report it with the lines above\n")
        code = Exit.BUG
    sys.exit(code)


def _show(refusal: Refusal) -> None:
    if "--json" in sys.argv:
        said = {"message": refusal.message, "hint": refusal.hint}
        sys.stderr.write(json.dumps({"error": said}) + "\n")
        return
    sys.stderr.write(f"error: {refusal.message}\n")
    if refusal.hint:
        sys.stderr.write(f"hint: {refusal.hint}\n")
