"""Asks answered in place, at the terminal of whoever follows the run."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from contextlib import suppress

from crewd_client.client import Client
from crewd_client.commands.answers import NoAnswerError, answer_of, invitation, question_lines
from crewd_client.commands.lines import answer_text
from crewd_client.commands.terminal import note, word
from crewd_client.commands.views import View
from crewd_client.errors import AskSettledError, InvalidRequestError
from crewd_client.v1.ask_event_pb2 import AskSettled
from crewd_client.v1.ask_pb2 import (
    ASK_STATUS_ANSWERED,
    ASK_STATUS_DECLINED,
    ASK_STATUS_OPEN,
    Ask,
)
from crewd_client.v1.event_pb2 import Event


class Prompter:
    """Shows one open ask after the other and reads the answer.

    An ask that is answered elsewhere meanwhile releases the prompt. One that was left open is not
    shown again.
    """

    def __init__(self, client: Client, view: View) -> None:
        self._client = client
        self._view = view
        self._open: dict[str, Ask] = {}
        self._changed = asyncio.Event()
        self._settled = asyncio.Event()
        self._current = ""
        self._outcome = ""

    def add(self, ask: Ask) -> None:
        if ask.status == ASK_STATUS_OPEN:
            self._open[ask.id] = ask
            self._changed.set()

    def notice(self, event: Event) -> None:
        """Take in what an event says about asks."""
        if event.kind == "ask_opened":
            self.add(event.ask_opened.ask)
        elif event.kind == "ask_settled":
            ask_id = event.ask_settled.ask_id
            self._open.pop(ask_id, None)
            if ask_id == self._current:
                self._outcome = _elsewhere(event.ask_settled, event.actor.name)
                self._settled.set()

    async def run(self) -> None:
        """Prompt until cancelled."""
        while True:
            while not self._open:
                self._changed.clear()
                await self._changed.wait()
            ask = self._open.pop(next(iter(self._open)))
            self._current, self._outcome = ask.id, ""
            self._settled.clear()
            with self._view.paused():
                await self._prompt(ask)
            self._current = ""

    async def _prompt(self, ask: Ask) -> None:
        for line in question_lines(ask):
            note(line)
        # What was typed before the question was seen is no answer to it.
        _forget_typed()
        while True:
            sys.stderr.write(invitation(ask))
            sys.stderr.flush()
            typed = await self._line()
            if typed is None:
                note()
                if self._outcome:
                    # More may have been typed meanwhile; the next ask must not get it.
                    _forget_typed()
                    note(f"  {self._outcome}")
                return
            if await self._send(ask, typed):
                return

    async def _send(self, ask: Ask, typed: str) -> bool:
        try:
            answer = answer_of(ask, typed)
            if answer is None:
                note(f"  left open; answer it later: crew answer {ask.id}")
            else:
                await self._client.asks.AnswerAsk(answer)
        except (NoAnswerError, InvalidRequestError) as error:
            note(f"  {error}")
            return False
        except AskSettledError as error:
            # The event tells by whom, and may be there already.
            note(f"  {self._outcome or _told_by(error)}")
        return True

    async def _line(self) -> str | None:
        """Give the typed line; nothing at the end of input or when the ask is settled."""
        reading = asyncio.ensure_future(_read_line(sys.stdin.fileno()))
        settled = asyncio.ensure_future(self._settled.wait())
        try:
            await asyncio.wait({reading, settled}, return_when=asyncio.FIRST_COMPLETED)
            if settled.done():
                _forget_typed()
                return None
            return reading.result()
        finally:
            reading.cancel()
            settled.cancel()


def _elsewhere(settled: AskSettled, by: str) -> str:
    outcome = word(settled, "outcome")
    where = " elsewhere" if settled.outcome in {ASK_STATUS_ANSWERED, ASK_STATUS_DECLINED} else ""
    what = answer_text(settled.answer) or settled.answer.note
    said = f"{outcome}{where}{f' by {by}' if by else ''}"
    return f"{said}: {what}" if what else said


def _told_by(error: AskSettledError) -> str:
    if error.ask is None:
        return str(error)
    settled = AskSettled(outcome=error.ask.status, answer=error.ask.answer)
    return _elsewhere(settled, error.ask.answered_by.name)


async def _read_line(fd: int) -> str | None:
    """Read one line from a terminal that gives whole lines; nothing at its end."""
    loop = asyncio.get_running_loop()
    while True:
        ready = loop.create_future()
        loop.add_reader(fd, ready.set_result, None)
        try:
            await ready
        finally:
            loop.remove_reader(fd)
        try:
            data = os.read(fd, 64 << 10)
        except (BlockingIOError, InterruptedError):
            continue
        return data.decode(errors="replace") if data else None


def _forget_typed() -> None:
    with suppress(termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
