"""Following a run until it is over or needs a person, whatever the daemon and the person do."""

from __future__ import annotations

import asyncio
import signal
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from crewd_client.client import Client
from crewd_client.commands.board import AT_REST, OVER, Board
from crewd_client.commands.exits import Exit, code_of
from crewd_client.commands.interrupts import Interrupts
from crewd_client.commands.pick import PAGE
from crewd_client.commands.prompt import Prompter
from crewd_client.commands.terminal import (
    at_terminal,
    clean_block,
    note,
    put,
    put_json,
    seconds_between,
    span,
    word,
)
from crewd_client.commands.views import JsonView, LiveView, PlainView, SilentView, View
from crewd_client.errors import CursorExpiredError
from crewd_client.json import to_json
from crewd_client.pages import list_asks, list_tasks
from crewd_client.v1.ask_pb2 import ASK_STATUS_OPEN
from crewd_client.v1.ask_service_pb2 import AskFilter
from crewd_client.v1.event_pb2 import Event
from crewd_client.v1.run_pb2 import RUN_STATUS_BLOCKED, RUN_STATUS_COMPLETED, Run
from crewd_client.v1.run_service_pb2 import CancelRunRequest, GetRunRequest
from crewd_client.watch import watch_run

SECOND_PRESS = 2.0
_REFRESH = 0.2


@dataclass(frozen=True, slots=True)
class Manner:
    """How to follow: from which event, what is shown, what ends it early."""

    after: int = 0
    as_json: bool = False
    silent: bool = False
    prompt: bool = True
    cancel_on_interrupt: bool = False
    wait_timeout: timedelta | None = None


async def follow(client: Client, run_id: str, manner: Manner) -> int:
    """Follow the run and give the exit code of what it came to."""
    run = (await client.runs.GetRun(GetRunRequest(run_id=run_id))).run
    board = Board()
    live = at_terminal() and not manner.as_json and not manner.silent
    if live:
        board.load(run, [task async for task in list_tasks(client, run.id, page_size=PAGE)])
    view = _view(board, run, manner, live=live)
    client.on_away = lambda away: view.say(_AWAY if away else "the daemon is back")
    following = _Following(client, view, manner)
    after = run.last_sequence if live or manner.silent else manner.after
    try:
        return await _attended(following, run, after=after)
    except BrokenPipeError:
        # Who read has seen enough; the run goes on.
        return Exit.INTERRUPTED
    finally:
        view.close()


async def end_of(client: Client, run_id: str, after: int) -> tuple[Run, Event | None]:
    """Wait until a run is over; give it and the event that told so, if one did."""
    last: Event | None = None
    while True:
        async with aclosing(watch_run(client, run_id, after)) as events:
            async for event in events:
                after = event.sequence
                last = event if event.kind == "run_finished" else last
        run = (await client.runs.GetRun(GetRunRequest(run_id=run_id))).run
        if run.status in OVER:
            return run, last


_AWAY = "the daemon is away; the run's workers go on, waiting for it"


def _view(board: Board, run: Run, manner: Manner, *, live: bool) -> View:
    if manner.silent:
        return SilentView()
    if manner.as_json:
        return JsonView()
    return LiveView(board, run.id) if live else PlainView()


@dataclass(slots=True)
class _Following:
    client: Client
    view: View
    manner: Manner
    cancelling: bool = field(default=False)

    async def to_rest(self, run: Run, after: int) -> Run:
        """Show what happens until the run is over or blocked; ask what it asks."""
        prompter = Prompter(self.client, self.view)
        helpers = [asyncio.create_task(self._tick())]
        if self.manner.prompt and at_terminal():
            helpers.append(asyncio.create_task(self._ask(prompter, run)))
        try:
            return await self._to_rest(run, after, prompter)
        finally:
            await _stop(*helpers)

    async def _to_rest(self, run: Run, after: int, prompter: Prompter) -> Run:
        while True:
            try:
                after = await self._shown(run, after, prompter)
            except CursorExpiredError:
                self.view.say("the log was replaced; going on from the present state")
                run = await self._read(run.id)
                after = run.last_sequence
            run = await self._read(run.id)
            if run.status in AT_REST:
                return run

    async def _shown(self, run: Run, after: int, prompter: Prompter) -> int:
        """Show events until one tells that the run is at rest; give the last one's sequence."""
        # What is older than the state that was read tells what was, not what is.
        if run.status in AT_REST and after >= run.last_sequence:
            return after
        async with aclosing(watch_run(self.client, run.id, after)) as events:
            async for event in events:
                after = event.sequence
                self.view.show(event)
                if after > run.last_sequence:
                    prompter.notice(event)
                status = event.run_status or (run.status if after == run.last_sequence else 0)
                if after >= run.last_sequence and status in AT_REST:
                    return after
        return after

    async def _read(self, run_id: str) -> Run:
        return (await self.client.runs.GetRun(GetRunRequest(run_id=run_id))).run

    async def _ask(self, prompter: Prompter, run: Run) -> None:
        open_ones = AskFilter(run_id=run.id, statuses=[ASK_STATUS_OPEN])
        for ask in reversed([ask async for ask in list_asks(self.client, open_ones)]):
            prompter.add(ask)
        await prompter.run()

    async def _tick(self) -> None:
        while True:
            self.view.refresh()
            await asyncio.sleep(_REFRESH)

    async def cancel(self, run_id: str) -> None:
        self.cancelling = True
        self.view.say(f"cancelling {run_id}; Ctrl-C leaves it to itself")
        await self.client.runs.CancelRun(CancelRunRequest(run_id=run_id, reason="interrupted"))


async def _attended(following: _Following, run: Run, *, after: int) -> int:
    """Follow while listening for signals and looking at the clock."""
    manner = following.manner
    clock = asyncio.get_running_loop().time
    end = None if manner.wait_timeout is None else clock() + manner.wait_timeout.total_seconds()
    with Interrupts() as interrupts:
        watching = asyncio.create_task(following.to_rest(run, after))
        pressed = asyncio.create_task(interrupts.next())
        try:
            while True:
                left = None if end is None else max(end - clock(), 0)
                await asyncio.wait({watching, pressed}, timeout=left, return_when=_FIRST)
                if watching.done():
                    return _told(following, watching.result())
                if not pressed.done():
                    following.view.close()
                    note(f"the time to wait is over; the run goes on: crew watch {run.id}")
                    return Exit.TIMED_OUT
                code = await _interrupted(following, run.id, pressed.result(), interrupts)
                if code is not None:
                    return code
                pressed = asyncio.create_task(interrupts.next())
        finally:
            await _stop(watching, pressed)


_FIRST = asyncio.FIRST_COMPLETED


async def _interrupted(
    following: _Following, run_id: str, which: signal.Signals, interrupts: Interrupts
) -> int | None:
    """Give the exit code to leave with, or nothing if the run is cancelled and followed on."""
    code = Exit.INTERRUPTED if which == signal.SIGINT else Exit.TERMINATED
    if following.cancelling:
        return code
    if following.manner.cancel_on_interrupt:
        await following.cancel(run_id)
        return None
    with following.view.paused():
        again = ""
        if which == signal.SIGINT:
            again = f"\n  Ctrl-C again within {SECOND_PRESS:.0f} s cancels it"
        note(
            f"\n{run_id} goes on\n  watch it:  crew watch {run_id}\n"
            f"  cancel it: crew cancel {run_id}{again}"
        )
        if which == signal.SIGINT and await interrupts.next_within(SECOND_PRESS) == signal.SIGINT:
            await following.cancel(run_id)
            return None
        following.view.close()
    return code


async def _stop(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _told(following: _Following, run: Run) -> int:
    """Print what the run came to."""
    following.view.close()
    if following.manner.as_json:
        put_json({"run": to_json(run)})
        return code_of(run)
    status = word(run, "status")
    if following.manner.silent:
        put(f"{run.id} {status}")
        return code_of(run)
    took = f" in {span(seconds_between(run.start_time, run.end_time))}" if _timed(run) else ""
    note(f"{run.id} {status}{took}: {_counted(run)}")
    if run.status == RUN_STATUS_COMPLETED:
        if run.result.text:
            put(run.result.text.removesuffix("\n"))
        if run.result.truncated:
            note(f"the result is cut; the whole is in {run.result.artifact_id}")
        return code_of(run)
    said = run.error.message or run.status_message or run.status_reason
    if said and said != status:
        note(f"error: {clean_block(said)}")
    if run.status == RUN_STATUS_BLOCKED:
        note(
            f"hint: see `crew show {run.id}`; then `crew resolve {run.id} TASK "
            f"accept|fail|skip`, `crew retry {run.id}` or `crew resume {run.id}`"
        )
    return code_of(run)


def _timed(run: Run) -> bool:
    return run.HasField("start_time") and run.HasField("end_time")


def _counted(run: Run) -> str:
    counts = to_json(run.task_counts)
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "no tasks"
