"""The cases taken from upstream. `decision` names crewd's own rule where it decides differently."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import pytest

from crewd.catalog import Agent, Catalog, NamedTask, PlanRequest, Source, plan
from crewd.core.model import Usage
from crewd.core.reports import (
    ArtifactGiven,
    Report,
    ResultGiven,
    ToolBegan,
    TurnEnded,
    TurnStop,
    Used,
)
from crewd.core.spec import AgentSpec
from crewd.workers.adapter import Exit
from crewd.workers.pi import PiAdapter
from crewd.workers.pi_keys import KEYS, keys_of
from crewd.workers.pi_start import EXTENSION, arguments, with_thinking
from tests.support.pi_golden import a_pi_start, fold

Case = Mapping[str, Any]
CASES: Final[list[Case]] = json.loads(
    (Path(__file__).parents[1] / "data" / "vectors" / "pi.json").read_text()
)
SETTLED: Final = b'{"type":"agent_settled"}'
OUTCOMES: Final = {
    TurnStop.DONE: "completed",
    TurnStop.LENGTH: "needs_attention_truncated",
    TurnStop.FAILED: "failed_provider_error",
}


def as_lines(events: list[object]) -> list[bytes]:
    return [json.dumps(event, separators=(",", ":")).encode() for event in events]


T = TypeVar("T")


def only(kind: type[T], reports: tuple[Report | ArtifactGiven, ...]) -> list[T]:
    return [report for report in reports if isinstance(report, kind)]


def summary(lines: list[bytes]) -> Case:
    reports = fold(lines).reports
    ended, spent = only(TurnEnded, reports), Usage()
    for used in only(Used, reports):
        spent = spent.plus(used.usage)
    return {
        "finalText": ended[-1].result.text,
        "outcome": OUTCOMES[ended[-1].stop],
        "errorMessage": ended[-1].message or None,
        "tools": [[tool.name, tool.title] for tool in only(ToolBegan, reports)],
        "turns": spent.turns,
        "usage": _usage(spent),
    }


def _usage(spent: Usage) -> Case | None:
    if spent == Usage():
        return None
    return {
        "input": spent.input_tokens,
        "output": spent.output_tokens,
        "cacheRead": spent.cache_read_tokens,
        "cacheWrite": spent.cache_write_tokens,
        "cost": (spent.cost_micros or 0) / 1_000_000,
    }


def pi_json_parse(given: str) -> Case:
    return summary([*given.encode().split(b"\n"), SETTLED])


def streamed(given: list[object]) -> Case:
    return summary(as_lines(given))


def pi_rpc_transcript(given: list[object]) -> Case:
    reports = fold(as_lines(given)).reports
    failed = only(TurnEnded, reports)[-1].stop is TurnStop.FAILED
    return {
        "finalStopReason": "error" if failed else "stop",
        "turnsEnded": len(only(TurnEnded, reports)),
        "turns": sum(used.usage.turns for used in only(Used, reports)),
        "tools": len(only(ToolBegan, reports)),
    }


def final_event(given: object) -> bool:
    return bool(only(TurnEnded, fold(as_lines([given])).reports))


def thinking_suffix(given: tuple[str, str]) -> list[str]:
    model, level = given
    words = arguments(a_pi_start(AgentSpec(name="a", model=model, thinking=level)))
    at = words.index("--model" if model else "--thinking")
    return list(words[at : at + 2])


def worker_args(given: Case) -> list[str]:
    agent = _in_role(given) if "agent" in given else AgentSpec(name="a")
    agent = replace(agent, thinking=given["thinking"], project_context=True)
    found = arguments(a_pi_start(agent))
    return ["<worker-extension>" if word == str(EXTENSION) else word for word in found]


def _in_role(given: Case) -> AgentSpec:
    """Freeze a built-in agent in a role, as it is in a run."""
    named = given["agent"]
    tools = tuple(named["tools"]) if "tools" in named else None
    agent = Agent(name=named["name"], source=Source.BUILTIN, file="a", tools=tools)
    task = NamedTask(id="t", agent=agent.name, role=given["role"])
    [spec] = plan(Catalog(agents={agent.name: agent}), PlanRequest(tasks=(task,))).agents.values()
    return spec


def yield_event(given: Case) -> Case | None:
    reports = fold(as_lines([given])).reports
    results = only(ResultGiven, reports)
    if not results:
        return None
    return {
        "summary": results[0].result.text,
        "structuredData": json.loads(results[0].result.data_json),
        "artifacts": {each.name: each.path for each in only(ArtifactGiven, reports)},
        "toolCallId": results[0].ref,
    }


def attempt_error(given: tuple[Case, Case | None]) -> Case:
    ended, said = given
    if said is None:
        adapter = PiAdapter()
        seen = Exit(exit_code=ended["exitCode"], signal=None, stderr_tail=ended["stderr"])
        verdict = adapter.end(adapter.initial(), seen)
        return {"cause": verdict.cause, "message": verdict.message}
    messages = [{"stopReason": "error", "errorMessage": m} for m in said["errorMessages"]]
    messages += [{"stopReason": "stop", "content": text} for text in said["textEvents"]]
    lines = as_lines([{"type": "message_end", "message": message} for message in messages])
    last = only(TurnEnded, fold([*lines, SETTLED]).reports)[-1]
    return {"cause": last.cause, "message": last.message}


def provider_env_keys(given: str) -> list[str] | str:
    found = keys_of(given)
    everything = dict.fromkeys(name for names in KEYS.values() for name in names)
    return "all" if found == tuple(everything) else list(found)


AREAS: Final[Mapping[str, Callable[[Any], object]]] = {
    "pi_json_parse": pi_json_parse,
    "pi_real_stream": streamed,
    "pi_raw_stream": streamed,
    "pi_rpc_transcript": pi_rpc_transcript,
    "final_event": final_event,
    "thinking_split": lambda given: with_thinking(*given),
    "thinking_suffix": thinking_suffix,
    "worker_args": worker_args,
    "yield_event": yield_event,
    "attempt_error": attempt_error,
    "provider_env_keys": provider_env_keys,
    "env.provider_keys": provider_env_keys,
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['area']}: {case['case']}")
def test_a_case_comes_out_as_expected(case: Case) -> None:
    found, expected = AREAS[case["area"]](case["input"]), case["expect"]
    if isinstance(found, dict):
        fields = cast("Case", found)
        assert {key: fields[key] for key in expected} == expected
    else:
        assert found == expected


def test_every_area_has_cases_and_every_deviation_says_why() -> None:
    assert {case["area"] for case in CASES} == set(AREAS)
    for case in CASES:
        assert ("decision" in case) is ("upstream_expect" in case)
        assert case.get("decision", "A.").endswith(".")
