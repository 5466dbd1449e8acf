from __future__ import annotations

from collections.abc import Mapping, Sequence


def waves(needs: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the tasks in layers: each needs only tasks of layers before it."""
    left = {task: len(set(required)) for task, required in needs.items()}
    dependents: dict[str, list[str]] = {task: [] for task in needs}
    for task, required in needs.items():
        for needed in set(required):
            dependents[needed].append(task)
    order = {task: index for index, task in enumerate(needs)}
    layers: list[list[str]] = []
    layer = [task for task, count in left.items() if count == 0]
    while layer:
        layers.append(layer)
        freed: list[str] = []
        for task in layer:
            for dependent in dependents[task]:
                left[dependent] -= 1
                if left[dependent] == 0:
                    freed.append(dependent)
        layer = sorted(freed, key=order.__getitem__)
    return layers
