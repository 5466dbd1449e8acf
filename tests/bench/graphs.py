"""What a task costs in small and large runs of three shapes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from crewd_client.v1.spec_pb2 import TaskSpec
from tests.bench.drive import Processes, Spent, chain, independent, layered, spend
from tests.bench.place import a_daemon
from tests.bench.rows import MILLISECONDS, TIMES, Row, at_most, middle, told
from tests.bench.scale import Scale
from tests.support.desk import Desk

Shape = Callable[[int], list[TaskSpec]]

_SMALL, _MIDDLE = 100, 1000


async def measure(scale: Scale) -> AsyncIterator[Row]:
    large = scale.pick(10_000, 2000)
    async with a_daemon(scale.folder) as desk:
        processes = await Processes.of(desk)
        await spend(desk, processes, independent(200))
        for row in await _large_against_small(desk, processes, large, scale.pick(2, 1)):
            yield row
        for shape in (chain, layered):
            for count, rounds in ((_SMALL, scale.pick(5, 1)), (_MIDDLE, 1), (large, 1)):
                spent = [await spend(desk, processes, shape(count)) for _ in range(rounds)]
                for row in _per_task(shape, spent):
                    yield row


async def _large_against_small(
    desk: Desk, processes: Processes, large: int, rounds: int
) -> list[Row]:
    """Take turns: a large run, and small ones that have as much of the machine's moods."""
    spent: dict[int, list[Spent]] = {_SMALL: [], _MIDDLE: [], large: []}
    for _ in range(rounds):
        for count, times in ((_SMALL, 8), (_MIDDLE, 1), (large, 1), (_MIDDLE, 1), (_SMALL, 8)):
            for _ in range(times):
                spent[count].append(await spend(desk, processes, independent(count)))
    walls = {count: middle([s.wall_per_task for s in each]) for count, each in spent.items()}
    cpus = {count: _cpu(each) for count, each in spent.items()}
    named = f"a task of {large} against one of {_SMALL}, independent"
    return [
        *(row for each in spent.values() for row in _per_task(independent, each)),
        at_most(f"{named}, wall", walls[large] / walls[_SMALL], TIMES, 1.3),
        at_most(f"{named}, CPU of daemon and host", cpus[large] / cpus[_SMALL], TIMES, 1.3),
    ]


def _per_task(shape: Shape, spent: list[Spent]) -> list[Row]:
    named = f"{shape.__name__}, {spent[0].tasks} tasks, per task"
    return [
        told(f"{named}, wall", middle([s.wall_per_task for s in spent]), MILLISECONDS),
        told(f"{named}, CPU of daemon and host", _cpu(spent), MILLISECONDS),
    ]


def _cpu(spent: list[Spent]) -> float:
    return sum(s.daemon_cpu + s.host_cpu for s in spent) / sum(s.tasks for s in spent)
