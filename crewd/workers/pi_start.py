"""The command line that pi is started with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from crewd.core.effects import StartWorker
from crewd.core.spec import AgentSpec

EXTENSION: Final = Path(__file__).with_name("pi_extension.ts")
OWN_TOOLS: Final = ("ask", "submit_result")
"""The tools of the extension."""
THINKING: Final = frozenset({"off", "minimal", "low", "medium", "high", "xhigh", "max"})
CHANGING: Final = ("edit", "write")
"""Tools that an agent which only reads has no use for."""


def arguments(start: StartWorker) -> tuple[str, ...]:
    """Return what follows the task's own command.

    The extensions, skills and prompt templates that pi would find by itself stay out: they would
    change what a run does, and what its agents are told, without a word of it in the run.
    """
    agent = start.agent
    return (
        *("--mode", "rpc", "--no-session"),
        *_model(start.model or (agent.model if agent else ""), agent.thinking if agent else ""),
        *(_tools(agent) if agent else ()),
        *("--no-extensions", "--extension", str(EXTENSION)),
        *("--no-skills", "--no-prompt-templates"),
        *(_system_prompt(agent) if agent else ()),
    )


def with_thinking(model: str, level: str) -> str:
    """Return the model with its level, unless it has one. `llama3.1:8b` has none."""
    if level not in THINKING or model.rpartition(":")[2] in THINKING:
        return model
    return f"{model}:{level}"


def _model(model: str, level: str) -> Sequence[str]:
    if model:
        return ("--model", with_thinking(model, level))
    return ("--thinking", level) if level in THINKING else ()


def _tools(agent: AgentSpec) -> Sequence[str]:
    """Name the tools. crewd's own are always among them, but `ask` can be taken away."""
    excluded = [name for name in agent.excluded_tools if name != "submit_result"]
    if agent.read_only:
        excluded += CHANGING
    words: list[str] = []
    if agent.tools is not None:
        words += ("--tools", ",".join(dict.fromkeys((*agent.tools, *OWN_TOOLS))))
    if excluded:
        words += ("--exclude-tools", ",".join(dict.fromkeys(excluded)))
    return words


def _system_prompt(agent: AgentSpec) -> Sequence[str]:
    words: list[str] = []
    if agent.system_prompt:
        flag = "--append-system-prompt" if agent.append_system_prompt else "--system-prompt"
        words += (flag, agent.system_prompt)
    if not agent.project_context:
        words.append("--no-context-files")
    return words
