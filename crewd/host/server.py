"""The host's loop: listen, start, feed, spool, reap, tell."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import NamedTuple

from crewd.host import reports
from crewd.host.connection import Connection
from crewd.host.disk import Disk, Reserve
from crewd.host.door import Door
from crewd.host.endings import Endings
from crewd.host.home import Home
from crewd.host.job import Job
from crewd.host.journal import Journal
from crewd.host.loop import Loop, Timer
from crewd.host.messages import Message, RefusedError, line
from crewd.host.outputs import Outputs
from crewd.host.owners import Owners
from crewd.host.passing import Passer
from crewd.host.protocol import FEATURES, PROTOCOL, VERSION, HostPaths, secret
from crewd.host.registry import Registry
from crewd.host.signals import Signals
from crewd.host.starter import Starter, Workshop
from crewd.host.tree import Process, described, is_alive
from crewd.host.verbs import Verbs

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_HOME_LOOK_SECONDS = 5.0


class Settings(NamedTuple):
    idle_exit: float
    unread_limit: int
    unread_limit_alone: int
    reserve: int | None = None


class Host:
    """One host process from its first turn to its last.

    In every turn the journal is written before anything is sent: nobody hears of an exit that a
    successor of this host would not know.
    """

    def __init__(
        self, paths: HostPaths, epoch: str, *, owners: Owners, journal: Journal, settings: Settings
    ) -> None:
        self._epoch = epoch
        self._settings = settings
        self._owners = owners
        self._journal = journal
        self._key = secret(paths.key)
        self._boot_id = _BOOT_ID.read_text().strip()
        self._news: list[bytes] = []
        self._idle: Timer | None = None
        self._home = Home(paths.lock)
        self._home_look: Timer | None = None
        self._left = False
        self._strays: list[Process] = []
        self._loop = Loop()
        self._signals = Signals(self._loop)
        self._disk = Disk(self._loop, self._tell)
        reserve = Reserve(paths.spool, settings.reserve)
        self._outputs = Outputs(self._loop, self._disk, reserve, self._tell)
        self._registry = Registry(paths, journal, owners)
        workshop = Workshop(self._loop, paths, owners, self._tell_room)
        self._starter = Starter(workshop, self._registry, self._outputs)
        self._endings = Endings(self._loop, owners, self._outputs, self._report_exit)
        self._verbs = Verbs(
            epoch, self._registry, self._outputs, starter=self._starter, endings=self._endings
        )
        self._verbs.on_never_started = self._report_never_started
        passer = Passer(epoch, self._registry, self._starter, owners=owners, outputs=self._outputs)
        passer.on_passed = self._report_pass
        self._verbs.add("pass", passer.perform)

    def run(self, listener: socket.socket, strays: list[Process]) -> None:
        """Serve until idle for long enough or told to end."""
        self._strays = strays
        door = Door(self._loop, listener, self._key)
        door.perform = self._verbs.perform
        self._verbs.take = door.take
        door.greet = self._describe
        door.on_controller = lambda: self._controller_changed(door)
        self._controller_changed(door)
        while not self._left and not (self._verbs.shutting_down and not self._registry.live):
            self._turn(door)
        door.close()
        self._journal.close()

    def _turn(self, door: Door) -> None:
        self._watch_idleness(door)
        self._watch_home()
        self._owners.forget_look()
        self._loop.turn(wait=not self._starter.waiting)
        if self._signals.child_died:
            self._signals.child_died = False
            self._endings.reap()
        if self._signals.terminate and not self._verbs.shutting_down:
            self._verbs.shut_down()
        if self._starter.waiting:
            self._starter.start_some()
        self._write_journal()
        self._send_news(door)
        door.flush()

    def _write_journal(self) -> None:
        try:
            self._journal.flush()
        except OSError as error:
            self._disk.refused(self._journal, error, self._journal_is_written)

    def _journal_is_written(self) -> bool:
        try:
            self._journal.flush()
        except OSError:
            return False
        return True

    def _send_news(self, door: Door) -> None:
        controller = door.controller
        if controller is None:
            self._outputs.fresh.clear()
        else:
            if self._news:
                controller.send_line(b"".join(self._news))
            if self._outputs.fresh and not controller.clogged:
                for job in self._outputs.fresh:
                    controller.send(reports.output(job))
                self._outputs.fresh.clear()
        self._news.clear()

    def _controller_changed(self, door: Door) -> None:
        # The next controller is told what is live, and decides anew about what is not.
        self._starter.remove_all(RefusedError("gone", "the controller that asked is gone"))
        self._news.clear()
        alone = door.controller is None
        settings = self._settings
        self._outputs.limit_unread(settings.unread_limit_alone if alone else settings.unread_limit)

    def _watch_idleness(self, door: Door) -> None:
        busy = door.controller is not None or self._registry.live
        if busy and self._idle is not None:
            self._idle.cancel()
            self._idle = None
        elif not busy and self._idle is None:
            self._idle = self._loop.after(self._settings.idle_exit, self._leave)

    def _watch_home(self) -> None:
        if self._home_look is None and self._registry.live:
            self._home_look = self._loop.after(_HOME_LOOK_SECONDS, self._look_at_home)

    def _look_at_home(self) -> None:
        """Stop what runs for a state directory that is gone: nobody can ask for it any more."""
        self._home_look = None
        if not self._verbs.shutting_down and not self._home.is_there():
            sys.stderr.write("crewd host: the state directory is gone: stopping all jobs\n")
            self._verbs.shut_down()

    def _leave(self) -> None:
        self._left = True

    def _describe(self) -> Message:
        return {
            "protocol": PROTOCOL,
            "version": VERSION,
            "features": FEATURES,
            "epoch": self._epoch,
            "boot_id": self._boot_id,
            "pid": os.getpid(),
            "store_marker": self._owners.store_marker,
            "strays": described(filter(is_alive, self._strays + self._owners.strays())),
            **self._registry.described(),
        }

    def _report_exit(self, job: Job, survivors: list[Process]) -> None:
        report = reports.exited(job, survivors, self._epoch)
        self._news.append(self._registry.ended(job, report))

    def _report_pass(self, controller: Connection, job: Job, successor: Job) -> None:
        report = reports.passed(job, successor, self._epoch)
        self._news.append(self._registry.ended(job, report))
        self._registry.started(successor)
        self._tell({"news": "started", "job": successor.key, "pid": successor.pid})
        # The end of the one comes before any answer about the other, of which more may follow.
        controller.send_line(b"".join(self._news))
        self._news.clear()

    def _report_never_started(self, key: str) -> None:
        report = reports.never_started(key, self._epoch)
        self._news.append(self._registry.reported(key, report))

    def _tell(self, news: Message) -> None:
        self._news.append(line(news))

    def _tell_room(self, job: str) -> None:
        self._tell({"news": "stdin_room", "job": job})
