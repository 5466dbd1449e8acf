"""Independent plain tasks, against a bare asyncio loop that spawns the same processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from tests.bench.bare import Bare, bare_loop
from tests.bench.drive import AT_ONCE, Processes, Spent, independent, spend
from tests.bench.place import a_daemon
from tests.bench.rows import COUNT, MILLISECONDS, PLAIN, TIMES, Row, at_most, middle, told
from tests.bench.scale import Scale
from tests.support.desk import Desk

_JUDGED = 500


async def measure(scale: Scale) -> AsyncIterator[Row]:
    async with a_daemon(scale.folder) as desk:
        processes = await Processes.of(desk)
        for _ in range(2):
            await spend(desk, processes, independent(200))
        for count, rounds in (
            (_JUDGED, scale.pick(9, 3)),
            (100, scale.pick(9, 2)),
            (scale.pick(2000, 1000), scale.pick(3, 1)),
        ):
            for row in await _compare(desk, processes, count, rounds):
                yield row


async def _compare(desk: Desk, processes: Processes, count: int, rounds: int) -> list[Row]:
    ours: list[Spent] = []
    bare: list[Bare] = []
    with_pidfd: list[Bare] = []
    for _ in range(rounds):
        bare.append(await bare_loop(count, AT_ONCE, "default"))
        ours.append(await spend(desk, processes, independent(count)))
        with_pidfd.append(await bare_loop(count, AT_ONCE, "pidfd"))
    rows = _walls(count, ours, bare, with_pidfd)
    return [*rows, *_costs(ours), *_bare_costs(bare, with_pidfd)] if count == _JUDGED else rows


def _walls(
    count: int, ours: Sequence[Spent], bare: Sequence[Bare], with_pidfd: Sequence[Bare]
) -> list[Row]:
    named = f"{count} x true, wall against the bare loop"
    ratio = middle([us.wall_per_task / it.wall for us, it in zip(ours, bare, strict=True)])
    other = middle([us.wall_per_task / it.wall for us, it in zip(ours, with_pidfd, strict=True)])
    against = f"{named} ({bare[0].watcher})"
    return [
        at_most(against, ratio, TIMES, 1.5) if count == _JUDGED else told(against, ratio, TIMES),
        told(f"{named} ({with_pidfd[0].watcher})", other, TIMES),
        told(f"{count} x true, per task", middle([s.wall_per_task for s in ours]), MILLISECONDS),
        told(f"{count} x true, bare loop, per task", middle([b.wall for b in bare]), MILLISECONDS),
    ]


def _costs(ours: Sequence[Spent]) -> list[Row]:
    tasks = sum(spent.tasks for spent in ours)
    events = sum(spent.events for spent in ours)
    return [
        at_most(
            "CPU of the daemon, per task",
            sum(s.daemon_cpu for s in ours) / tasks,
            MILLISECONDS,
            0.7,
        ),
        at_most(
            "CPU of the host, per task", sum(s.host_cpu for s in ours) / tasks, MILLISECONDS, 0.35
        ),
        at_most("commits, per task", sum(s.commits for s in ours) / tasks, PLAIN, 0.8),
        at_most("files left by a run of plain tasks", max(s.files for s in ours), COUNT, 0),
        told("folders in which a name came or went", max(s.folders for s in ours), COUNT),
        told("events, per task", events / tasks, PLAIN),
    ]


def _bare_costs(bare: Sequence[Bare], with_pidfd: Sequence[Bare]) -> list[Row]:
    return [
        row
        for loops in (bare, with_pidfd)
        for row in (
            told(
                f"CPU of the bare loop itself ({loops[0].watcher}), per task",
                middle([loop.own_cpu for loop in loops]),
                MILLISECONDS,
            ),
            told(
                "CPU of its children, per task",
                middle([loop.children_cpu for loop in loops]),
                MILLISECONDS,
            ),
        )
    ]
