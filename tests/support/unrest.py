"""People and misfortune around a run: watchers that come and go, answers, kills at random."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from random import Random

from crewd_client import AskSettledError, CrewdError, UnavailableError, list_asks, watch_run
from crewd_client.v1.ask_pb2 import ASK_STATUS_OPEN
from crewd_client.v1.ask_service_pb2 import AnswerAskRequest, AskFilter
from crewd_client.v1.event_pb2 import Event
from tests.support.daemon import Daemon, alive, eventually
from tests.support.desk import Desk

READY_SHARE = 0.85
VICTIMS = (("daemon",), *[("host",)] * 4, ("daemon", "host"))
LONGEST_CALM_SECONDS = 0.25
MOST_EVENTS_IN_ONE_GO = 40


async def unsteady_watch(desk: Desk, run_id: str, random: Random) -> list[Event]:
    """Watch a run to its end, hanging up at random and going on where it was."""
    events: list[Event] = []
    while not events or events[-1].kind != "run_finished":
        patience = random.randint(1, MOST_EVENTS_IN_ONE_GO)
        after = events[-1].sequence if events else 0
        async with aclosing(watch_run(desk.client, run_id, after)) as watched:
            async for event in watched:
                events.append(event)
                patience -= 1
                if not patience:
                    break
    return events


async def answer_everything(desk: Desk, run_id: str) -> None:
    """Answer each question as often as it takes to hear that it was heard."""
    wanted = AskFilter(run_id=run_id, statuses=[ASK_STATUS_OPEN])

    async def answer_all() -> None:
        async for ask in list_asks(desk.client, wanted):
            request = AnswerAskRequest(ask_id=ask.id, text=f"of {ask.task_id}")
            await desk.client.asks.AnswerAsk(request)

    while True:
        await patiently(answer_all)
        await asyncio.sleep(0.05)


async def patiently(work: Callable[[], Awaitable[object]]) -> None:
    """Do something whose second try may find that the first one did it, daemon or not."""
    try:
        await work()
    except (UnavailableError, AskSettledError):
        return
    except CrewdError as error:
        if error.code.name not in {"CANCELLED", "DEADLINE_EXCEEDED"}:
            raise


class Misfortune:
    """Kills the daemon, the host, or both, and starts the daemon again if need be."""

    def __init__(self, daemon: Daemon, random: Random) -> None:
        self._daemon = daemon
        self._random = random
        self.kills = {"daemon": 0, "host": 0}

    async def strike(self) -> None:
        """Kill at a random point: mostly when all is up again, sometimes before that."""
        if self._random.random() < READY_SHARE:
            await self._daemon.serves()
            await self._daemon.host()
        await asyncio.sleep(self._random.uniform(0, LONGEST_CALM_SECONDS))
        victims = self._random.choice(VICTIMS)
        if "host" in victims:
            await self._kill_host()
        if "daemon" in victims:
            self._daemon.kill()
            self._daemon.launch()
            self.kills["daemon"] += 1

    async def _kill_host(self) -> None:
        # One that is only just starting may die of its daemon's death before it says its pid.
        host = self._daemon.host_pid()
        if host and alive(host):
            self._daemon.signal_host(signal.SIGKILL)
            await eventually(lambda: not alive(host), "the host is dead")
            self.kills["host"] += 1
