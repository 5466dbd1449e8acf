from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.matching import difference

EVENTS = [{"kind": "a", "run_sequence": 3}, {"kind": "b", "run_sequence": 4}]


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        (1, 1),
        (1, 1.0),
        (None, None),
        ({"a": 1}, {"a": 1, "b": 2}),
        ([{"a": 1}, 2], [{"a": 1, "b": 2}, 2]),
        ({"a": {"$absent": True}}, {"b": 1}),
        ({"$has": [{"a": 1}, 3]}, [3, {"a": 1}]),
        ({"$length": 2}, [0, 0]),
        ({"$min": 3}, 3),
        ({"$match": "^b+$"}, "bb"),
        ({"$contiguous": 3}, EVENTS),
        ({"$kinds": ["b"]}, EVENTS),
        ({"$all": [{"$length": 2}, {"$has": [{"kind": "a"}]}]}, EVENTS),
    ],
)
def test_what_fits(expected: Any, got: Any) -> None:  # noqa: ANN401
    assert difference(expected, got) is None


@pytest.mark.parametrize(
    ("expected", "got", "said"),
    [
        (1, True, "it: 1 is expected, not true"),
        ("1", 1, "it:"),
        ({"a": 1}, {"a": 2}, ".a: 1 is expected, not 2"),
        ({"a": None}, {}, ".a: it there is expected"),
        ({"a": {"$absent": True}}, {"a": None}, ".a: nothing is expected"),
        ({"a": 1}, [], "it:"),
        ([1], [1, 2], "a list of 1"),
        ([[1], [{"a": 1}]], [[1], [{"a": 2}]], "[1][0].a: 1"),
        ({"$has": [1, 2]}, [1], "an item like 2"),
        ({"$length": 1}, [], "1 items"),
        ({"$min": 3}, 2, "at least 3"),
        ({"$match": "^b+$"}, "bab", "matches"),
        ({"$contiguous": 2}, EVENTS, "[0]"),
        ({"$kinds": ["b", "a"]}, EVENTS, "a in its place"),
        ({"$all": [{"$length": 2}, {"$has": [{"kind": "c"}]}]}, EVENTS, "an item like"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(
    expected: Any,  # noqa: ANN401
    got: Any,  # noqa: ANN401
    said: str,
) -> None:
    assert said in (difference(expected, got) or "")
