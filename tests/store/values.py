"""Generated rows of any shape their types allow and SQLite and JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_NUMBER = st.integers(-(2**63), 2**63 - 1)
_SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: _TEXT,
    int: _NUMBER,
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    type(None): st.none(),
}


@cache
def rows(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Each field is its default or anything of its type; ids are plain."""
    hints = get_type_hints(kind)
    return st.builds(kind, **{f.name: _values(hints[f.name]) for f in fields(kind)})


def _values(hint: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401 - a type hint is anything
    hint = getattr(hint, "__supertype__", hint)
    if hint in _SCALARS:
        return _SCALARS[hint]
    if is_dataclass(hint):
        return rows(hint) if isinstance(hint, type) else st.nothing()
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    parts = get_args(hint)
    if get_origin(hint) is tuple:
        return st.lists(_values(parts[0]), max_size=2).map(tuple)
    if get_origin(hint) in {dict, Mapping}:
        return st.dictionaries(_values(parts[0]), _values(parts[1]), max_size=2)
    return st.one_of([_values(part) for part in parts])
