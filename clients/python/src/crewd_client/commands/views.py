"""How a run that is followed is shown: a live table, plain lines, or JSON lines."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from crewd_client.commands.board import Board
from crewd_client.commands.lines import plain_line
from crewd_client.commands.terminal import note, put_json, shorten, span
from crewd_client.json import enum_name, to_json
from crewd_client.v1.event_pb2 import Event
from crewd_client.v1.run_pb2 import RunStatus
from crewd_client.v1.task_pb2 import TaskStatus

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table


class View(Protocol):
    """Shows what happens to a run."""

    def show(self, event: Event) -> None: ...

    def say(self, text: str) -> None:
        """Tell something that is no event."""
        ...

    def refresh(self) -> None:
        """Bring the screen up to date; called a few times a second."""
        ...

    def close(self) -> None: ...

    @contextmanager
    def paused(self) -> Generator[None]:
        """Leave the terminal to somebody else for a while."""
        ...


class _Lines:
    def say(self, text: str) -> None:
        note(text)

    def refresh(self) -> None:
        pass

    def close(self) -> None:
        pass

    @contextmanager
    def paused(self) -> Generator[None]:
        yield


class SilentView(_Lines):
    """Shows nothing."""

    def show(self, event: Event) -> None:
        pass


class JsonView(_Lines):
    """Prints each event as one line of result."""

    def show(self, event: Event) -> None:
        put_json(to_json(event))

    def say(self, text: str) -> None:
        pass


class PlainView(_Lines):
    """Prints a line of progress for each event worth one."""

    def show(self, event: Event) -> None:
        line = plain_line(event)
        if line is not None:
            note(line)


class LiveView:
    """Draws a table of the tasks, over and over."""

    def __init__(self, board: Board, run_id: str) -> None:
        from rich.console import Console  # noqa: PLC0415  # only at a terminal
        from rich.live import Live  # noqa: PLC0415

        self._board = board
        self._run_id = run_id
        self._console: Console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._live: Live = Live(console=self._console, auto_refresh=False, transient=True)
        self._pauses = 0
        self._closed = False
        self._live.start()

    def show(self, event: Event) -> None:
        self._board.apply(event)

    def say(self, text: str) -> None:
        with self.paused():
            note(text)

    def refresh(self) -> None:
        if not self._pauses and not self._closed:
            rows = max(self._console.height - _AROUND_ROWS, _FEWEST_ROWS)
            self._live.update(self._table(rows), refresh=True)

    def close(self) -> None:
        """Leave the last table on the screen, unless somebody else has the terminal."""
        if not self._pauses and not self._closed:
            self._live.stop()
            self._console.print(self._table(_MOST_ROWS))
        self._closed = True

    @contextmanager
    def paused(self) -> Generator[None]:
        # Several may need the terminal at once, e.g. a prompt and an interrupt.
        self._pauses += 1
        self._live.stop()
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses and not self._closed:
                self._live.start()
                self.refresh()

    def _table(self, most_rows: int) -> Table:
        from rich import box  # noqa: PLC0415  # only at a terminal
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        board, width = self._board, self._console.width
        rows = board.urgent_rows(most_rows)
        hidden = len(board.rows) - len(rows)
        table = Table(box=box.SIMPLE_HEAD, expand=True, title_justify="left", pad_edge=False)
        title = f"{self._run_id} {_run(board.status)} {board.title}"
        table.title = Text(shorten(title, width))
        counted = f"{_counted(board)}; {hidden} not shown" if hidden else _counted(board)
        table.caption = Text(shorten(counted, width))
        # What says how it stands is whole, also where there is little room.
        longest = max((len(_task(row.status)) for row in rows), default=0)
        table.add_column("task", no_wrap=True)
        table.add_column("status", no_wrap=True, min_width=longest)
        table.add_column("try", no_wrap=True)
        table.add_column("elapsed", no_wrap=True)
        table.add_column("last message", ratio=1, no_wrap=True, overflow="ellipsis")
        for row in rows:
            elapsed = "" if row.elapsed is None else span(row.elapsed)
            status = Text(_task(row.status), style=_STYLES.get(_task(row.status), ""))
            attempt = str(row.attempt or "")
            message = Text(shorten(row.message, 400))
            name = Text(shorten(row.id, max(width // 3, _SHORTEST_NAME)))
            table.add_row(name, status, attempt, elapsed, message)
        return table


_AROUND_ROWS = 7
"""Lines of a table that are not its rows."""
_FEWEST_ROWS = 3
_MOST_ROWS = 200
"""What a finished run leaves on the screen; `crew show` has all."""
_SHORTEST_NAME = 12
_STYLES = {
    "running": "cyan",
    "waiting": "bold yellow",
    "completed": "green",
    "failed": "red",
    "needs_attention": "bold magenta",
    "queued": "dim",
    "skipped": "dim",
}


def _counted(board: Board) -> str:
    counts = sorted(board.counts().items())
    return ", ".join(f"{count} {_task(status)}" for status, count in counts)


def _task(status: TaskStatus.ValueType) -> str:
    return str(enum_name(TaskStatus.DESCRIPTOR, status))


def _run(status: RunStatus.ValueType) -> str:
    return str(enum_name(RunStatus.DESCRIPTOR, status)) if status else ""
