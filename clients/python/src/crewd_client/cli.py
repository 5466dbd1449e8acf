"""`crew`: the command people use.

A command's module is loaded when the command is used, so that each starts fast.
"""

from __future__ import annotations

import gc
import io
import os
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from typing import NoReturn, cast

import click

from crewd_client._version import __version__

# Each command's module and what it does.
_COMMANDS = {
    "run": ("run", "Start a run and follow it."),
    "ls": ("ls", "List runs, unfinished ones first."),
    "show": ("ls", "Show a run and its tasks."),
    "watch": ("watch", "Follow a run."),
    "wait": ("watch", "Wait until a run is over."),
    "events": ("events", "Print the events of a run."),
    "logs": ("logs", "Print what a task's worker wrote."),
    "asks": ("asks", "List the questions that wait for an answer."),
    "answer": ("asks", "Answer a question."),
    "cancel": ("control", "End runs."),
    "resume": ("control", "Let a blocked or ended run go on."),
    "retry": ("control", "Run tasks again."),
    "resolve": ("control", "Decide about a task that needs attention."),
    "steer": ("control", "Send a word to a running worker."),
    "rm": ("control", "Delete runs that are over."),
    "call": ("call", "Call any method of the daemon with JSON."),
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"crewd_client.commands.{_COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="crew", message="%(prog)s %(version)s")
@click.option("--state-dir", metavar="DIR", help="The daemon's state directory.")
@click.option("--socket", metavar="PATH", help="The daemon's socket.")
@click.pass_context
def crew(ctx: click.Context, state_dir: str | None, socket: str | None) -> None:
    """Run crews of agents, follow them, answer their questions. The daemon itself: `crewd`."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
        return
    from crewd_client.commands.session import Session  # noqa: PLC0415  # `--help` needs no gRPC

    ctx.obj = Session(state_dir, socket)


def main() -> NoReturn:
    """Run the command that was typed and exit with its code."""
    # gRPC writes its own log to stderr, which is for people and for JSON.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # Loading makes much and frees nothing; the collector goes on when the work begins.
    gc.disable()
    with suppress(AttributeError):
        # What a terminal cannot show must not end the command.
        cast("io.TextIOWrapper", sys.stdout).reconfigure(errors="backslashreplace")
    code = _outcome()
    gc.enable()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes stdout when it ends, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _outcome() -> int:
    try:
        code = crew.main(prog_name="crew", standalone_mode=False)
    except (KeyboardInterrupt, click.Abort):
        return 130
    except click.ClickException as error:
        return _say_usage(error)
    except Exception as error:  # noqa: BLE001  # the top: a bug of ours has its own exit code
        return _say(error)
    return int(code or 0)


def _say_usage(error: click.ClickException) -> int:
    from crewd_client.commands.exits import Refusal  # noqa: PLC0415  # as above

    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"{context.command_path} --help" if context is not None else ""
    return _say(Refusal(error.format_message(), hint=hint, code=error.exit_code))


def _say(error: Exception) -> int:
    from crewd_client.commands.exits import Exit, Refusal, refusal_of  # noqa: PLC0415  # as above
    from crewd_client.commands.terminal import note  # noqa: PLC0415
    from crewd_client.errors import CrewdError  # noqa: PLC0415
    from crewd_client.json import to_line  # noqa: PLC0415

    refusal = refusal_of(error) if isinstance(error, CrewdError) else error
    if not isinstance(refusal, Refusal):
        if os.environ.get("CREWD_DEBUG") == "1":
            traceback.print_exception(error)
        message = f"{type(error).__name__}: {error}"
        hint = "this is a bug in crew: please report it with what CREWD_DEBUG=1 shows"
        refusal = Refusal(message, hint=hint, code=Exit.BUG)
    if _wants_json():
        sys.stderr.write(to_line(refusal.data()) + "\n")
        return refusal.code
    note(f"error: {refusal.message}")
    if refusal.hint:
        note(f"hint: {refusal.hint}")
    return refusal.code


def _wants_json() -> bool:
    given = sys.argv[1:]
    return "--json" in (given[: given.index("--")] if "--" in given else given)
