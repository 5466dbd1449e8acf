"""Runs as hypothesis draws them: mixed ones, and crews whose agents are much alike."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from hypothesis import strategies as st

from crewd.core.spec import (
    Adapter,
    AgentSpec,
    AskPolicy,
    FailureMode,
    Limits,
    OnNeedsAttention,
    OnTimeout,
    OutputSpec,
    RetryPolicy,
    RunSpec,
    TaskSpec,
)
from crewd.core.units import seconds
from tests.support.builders import a_spec, a_task

Draw = Callable[[st.SearchStrategy[Any]], Any]
SCHEMA: Final = json.dumps({"type": "object", "required": ["count"]})
MIXED: Final = (Adapter.JSONL, Adapter.JSONL, *Adapter)
_NONE: Final[list[str]] = []


@st.composite
def tasks(draw: Draw, names: str = "abcdef", least: int = 1, most_needs: int = 2) -> list[TaskSpec]:
    made: list[TaskSpec] = []
    for name in names[: draw(st.integers(least, len(names)))]:
        earlier = [task.id for task in made]
        choice = st.lists(st.sampled_from(earlier), max_size=most_needs)
        needs: list[str] = draw(choice if earlier else st.just(_NONE))
        made.append(
            a_task(
                name,
                *needs,
                adapter=draw(st.sampled_from(MIXED)),
                timeout=draw(st.sampled_from([None, seconds(20)])),
                retry=RetryPolicy(
                    max_attempts=draw(st.integers(1, 3)),
                    backoff=draw(st.sampled_from([seconds(0), seconds(2)])),
                ),
            )
        )
    return made


@st.composite
def crews(draw: Draw) -> list[TaskSpec]:
    """Draw tasks for agents, nearly all of which would be started in the same way."""
    return [
        replace(
            task,
            adapter=Adapter.PI,
            agent=draw(st.sampled_from(["coder"] * 6 + ["critic"])),
            command=("pi",),
            output=draw(st.sampled_from(_OUTPUTS)),
        )
        for task in draw(tasks("abcdefg", least=3, most_needs=draw(st.integers(0, 1))))
    ]


@st.composite
def specs(draw: Draw, drawn: st.SearchStrategy[list[TaskSpec]]) -> RunSpec:
    timeout = draw(st.sampled_from([None, seconds(10)]))
    spec = a_spec(
        *draw(drawn),
        failure_mode=draw(st.sampled_from(FailureMode)),
        on_needs_attention=draw(st.sampled_from(OnNeedsAttention)),
        asks=AskPolicy(on_timeout=draw(st.sampled_from(OnTimeout)), timeout=timeout),
        limits=Limits(
            max_concurrent_workers=draw(st.integers(1, 3)),
            max_duration=draw(st.sampled_from([None, None, seconds(200)])),
            max_tokens=draw(st.sampled_from([None, None, 100])),
        ),
    )
    most = draw(st.sampled_from([None, None, 1]))
    return replace(spec, agents={"coder": AgentSpec(name="coder", max_turns=most)})


_OUTPUTS: Final = (
    OutputSpec(),
    OutputSpec(),
    OutputSpec(schema_json=SCHEMA),
    OutputSpec(name="findings.txt"),
)
