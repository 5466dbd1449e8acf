"""Whether what came is as expected, and where it is not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, cast

# JSON as it comes: its shape is what is being looked at.
Json = Any
_SHOWN = 2000


def difference(expected: Json, got: Json, path: str = "") -> str | None:
    """Tell what is not as expected; nothing if all is."""
    if isinstance(expected, dict):
        return _object(cast("dict[str, Json]", expected), got, path)
    if isinstance(expected, list):
        return _list(cast("list[object]", expected), got, path)
    # True is 1 to Python, but not in JSON.
    same = expected == got and isinstance(expected, bool) == isinstance(got, bool)
    return None if same else _unlike(path, _shown(expected), got)


def _object(expected: dict[str, Json], got: Json, path: str) -> str | None:
    operator = next((key for key in expected if key.startswith("$")), None)
    if operator is not None:
        return _OPERATORS[operator](expected[operator], got, path)
    if not isinstance(got, dict):
        return _unlike(path, _shown(expected), got)
    given = cast("dict[str, Json]", got)
    return _first(_key(given, key, value, f"{path}.{key}") for key, value in expected.items())


def _list(expected: list[Json], got: Json, path: str) -> str | None:
    if not isinstance(got, list):
        return _unlike(path, "a list", got)
    given = cast("list[object]", got)
    if len(given) != len(expected):
        return _unlike(path, f"a list of {len(expected)}", given)
    pairs = enumerate(zip(expected, given, strict=True))
    return _first(difference(one, other, f"{path}[{i}]") for i, (one, other) in pairs)


def _key(got: dict[str, Json], key: str, expected: Json, path: str) -> str | None:
    absent = expected == {"$absent": True}
    if absent != (key not in got):
        return _unlike(path, "nothing" if absent else "it there", got.get(key, got))
    return None if absent else difference(expected, got[key], path)


def _has(wanted: list[Json], got: list[Json], path: str) -> str | None:
    lacking = [each for each in wanted if all(difference(each, item) for item in got)]
    return _unlike(path, f"an item like {_shown(lacking[0])}", got) if lacking else None


def _length(wanted: int, got: list[Json], path: str) -> str | None:
    return None if len(got) == wanted else _unlike(path, f"{wanted} items", got)


def _min(wanted: float, got: float, path: str) -> str | None:
    return None if got >= wanted else _unlike(path, f"at least {wanted}", got)


def _match(wanted: str, got: str, path: str) -> str | None:
    return None if re.search(wanted, got) else _unlike(path, f"what matches {wanted!r}", got)


def _contiguous(first: int, events: list[Json], path: str) -> str | None:
    got = [event["run_sequence"] for event in events]
    return difference(list(range(first, first + len(got))), got, f"{path} (run_sequence)")


def _kinds(wanted: list[str], events: list[Json], path: str) -> str | None:
    got = [event["kind"] for event in events]
    left = iter(got)
    missed = next((kind for kind in wanted if kind not in left), None)
    return None if missed is None else _unlike(path, f"{missed} in its place", got)


def _all(wanted: list[Json], got: Json, path: str) -> str | None:
    return _first(difference(each, got, path) for each in wanted)


_OPERATORS: dict[str, Callable[[Json, Json, str], str | None]] = {
    "$has": _has,
    "$length": _length,
    "$min": _min,
    "$match": _match,
    "$contiguous": _contiguous,
    "$kinds": _kinds,
    "$all": _all,
}
OPERATORS = frozenset({*_OPERATORS, "$absent"})


def _first(differences: Iterable[str | None]) -> str | None:
    return next((each for each in differences if each is not None), None)


def _unlike(path: str, wanted: str, got: Json) -> str:
    return f"{path or 'it'}: {wanted} is expected, not {_shown(got)}"


def _shown(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
