"""`crew`: the command people use.

A command's module is loaded when the command is used, so that each starts fast.
"""

from __future__ import annotations

import errno
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
    "artifacts": ("artifacts", "List what a run keeps, or print one thing of it."),
    "asks": ("asks", "List the questions that wait for an answer."),
    "ask": ("ask", "Ask a person a question, inside a worker."),
    "answer": ("asks", "Answer a question."),
    "cancel": ("control", "End runs."),
    "resume": ("control", "Let a blocked or ended run go on."),
    "retry": ("control", "Run tasks again."),
    "resolve": ("control", "Decide about a task that needs attention."),
    "steer": ("steer", "Send a word to a running worker."),
    "rm": ("control", "Delete runs that are over."),
    "agents": ("catalog", "List the agents there are, or show one."),
    "teams": ("catalog", "List the teams there are, or show one."),
    "workflows": ("catalog", "List the workflows there are, or show one."),
    "skills": ("catalog", "List the skills there are, or show one."),
    "validate": ("validate", "Tell what is wrong with agents, teams, workflows and skills."),
    "call": ("call", "Call any method of the daemon with JSON."),
}


class _Text(click.types.StringParamType):
    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        text = str(super().convert(value, param, ctx))
        try:
            text.encode()
        except UnicodeEncodeError:
            self.fail(f"{text[:100]!a} is not UTF-8 text", param, ctx)
        return text


_TEXT = _Text()


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
        for parameter in command.params:
            # Text goes to the daemon, which takes no other; a file may have any name.
            if parameter.type is click.STRING and parameter.name != "file":
                parameter.type = _TEXT
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
    _open_standard_streams()
    with suppress(AttributeError):
        # What a terminal cannot show must not end the command.
        cast("io.TextIOWrapper", sys.stdout).reconfigure(errors="backslashreplace")
    code = _outcome()
    gc.enable()
    problem = _stdout_problem()
    if problem is not None and problem.errno != errno.EPIPE:
        code = _say_unwritten(problem)
    sys.exit(code)


def _open_standard_streams() -> None:
    """Put something in the place of streams that are closed: it cannot be read or written."""
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY), "r", encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        # What went wrong can be told to nobody.
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def _stdout_problem() -> OSError | None:
    """Tell why stdout takes nothing, if it does not; from then on it goes nowhere."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # What could not be written is still there, and the interpreter tries again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return error
    return None


def _say_unwritten(error: OSError) -> int:
    from crewd_client.commands.exits import Exit, Refusal  # noqa: PLC0415  # as above

    return _say(Refusal(f"cannot write to stdout: {error.strerror}", code=Exit.FAILED))


def _outcome() -> int:
    try:
        code = crew.main(prog_name="crew", standalone_mode=False)
    except (KeyboardInterrupt, click.Abort):
        return 130
    except click.ClickException as error:
        return _say_usage(error)
    except OSError as error:
        unwritten = _stdout_problem()
        return _say(error) if unwritten is None else _say_unwritten(unwritten)
    except Exception as error:  # noqa: BLE001  # the top: a bug of ours has its own exit code
        return _say(error)
    return int(code or 0)


def _say_usage(error: click.ClickException) -> int:
    from crewd_client.commands.exits import Refusal  # noqa: PLC0415  # as above

    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"{context.command_path} --help" if context is not None else ""
    return _say(Refusal(error.format_message(), hint=hint, code=error.exit_code))


def _say(error: Exception) -> int:
    from crewd_client.commands.exits import Exit, Refusal, refusal_of_any  # noqa: PLC0415  # as above
    from crewd_client.commands.terminal import note  # noqa: PLC0415
    from crewd_client.json import to_line  # noqa: PLC0415

    refusal = error if isinstance(error, Refusal) else refusal_of_any(error)
    if refusal.code == Exit.BUG and os.environ.get("CREWD_DEBUG") == "1":
        traceback.print_exception(error)
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
