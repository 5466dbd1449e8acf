"""Agent files: front matter, then the system prompt."""

from __future__ import annotations

import re
from typing import Final

from crewd.catalog import frontmatter
from crewd.catalog.fields import Fields
from crewd.catalog.files import Found, findings_of
from crewd.catalog.findings import Findings, shown
from crewd.catalog.nodes import Scalar
from crewd.catalog.tools import tools_of
from crewd.catalog.values import Agent, Problem, Source
from crewd.core.spec import Adapter

PROMPT: Final = "{prompt}"
"""Stands for the task's text among the arguments of an agent that is a plain command."""
PROMPT_BYTES: Final = 96 * 1024
THINKING: Final = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
NAME_RULE: Final = "use letters, digits, -, _ and ., at most 80"
_PROVIDER_FIX: Final = "write it as provider/model"
_ADAPTERS: Final = (Adapter.PI.value, Adapter.JSONL.value, Adapter.COMMAND.value)
_MODES: Final = ("replace", "append")
_NO_EFFECT: Final[frozenset[str]] = frozenset(
    {
        *("fallback_models", "memory", "effort", "load_mode", "default_tools", "context_mode"),
        *("max_tokens", "inherit_skills", "scratchpad", "extensions", "exclude_extensions"),
        *("triggers", "trigger", "use_when", "avoid_when", "cost", "category", "color"),
        *("disable_tools", "permission_mode", "hooks", "mcp_servers", "background", "isolation"),
        *("output", "default_reads", "default_progress", "interactive"),
    }
)
_FORBIDDEN: Final = ("extensions", "exclude_extensions")


def parse(found: Found) -> tuple[Agent | None, list[Problem]]:
    """Return the agent, None if it cannot be used or is switched off, and what is wrong."""
    findings = findings_of(found)
    document = frontmatter.read(found.text, findings, lenient=found.place.foreign)
    fields = Fields(document.head, findings)
    if document.head is None and not findings.failed:
        fix = "begin the file with `---`, `description: …`, `---`"
        findings.warn(1, "it has no front matter; the agent is named after the file", fix)
    agent = _agent(found, fields, document.body.strip())
    disabled = _disabled(fields)
    is_project = found.place.source is Source.PROJECT
    fields.finish(_NO_EFFECT, forbidden=_FORBIDDEN if is_project else ())
    usable = not findings.failed and not disabled
    return (agent if usable else None), findings.problems


def _agent(found: Found, fields: Fields, prompt: str) -> Agent:
    findings = fields.findings
    name = fields.text("name") or found.path.name.removesuffix(".md")
    if not NAME.fullmatch(name):
        findings.error(fields.line("name"), f"{shown(name)} is no name for an agent", NAME_RULE)
    if len(prompt.encode()) > PROMPT_BYTES:
        findings.error(1, f"the system prompt has more than {PROMPT_BYTES // 1024} KiB")
    command = fields.arguments("command")
    adapter = _adapter(fields, command)
    return Agent(
        name=name,
        description=fields.text("description"),
        source=found.place.source,
        file=findings.file,
        model=_model(fields, adapter, foreign=found.place.foreign),
        thinking=_thinking(fields),
        tools=_tools(fields, foreign=found.place.foreign),
        excluded_tools=_excluded(fields),
        skills=fields.skills("skills", "skill")[0],
        append_system_prompt=fields.choice(_MODES, "system_prompt_mode") == "append",
        project_context=bool(fields.flag("inherit_project_context", "project_context")),
        max_turns=fields.count("max_turns"),
        read_only=fields.flag("read_only"),
        adapter=adapter,
        command=command,
        env_from=fields.variables("env_from"),
        system_prompt=prompt,
    )


def _adapter(fields: Fields, command: tuple[str, ...]) -> Adapter:
    named = fields.choice(_ADAPTERS, "adapter")
    adapter = Adapter(named) if named else Adapter.PI
    if adapter is not Adapter.PI and not command:
        fix = "add `command: [program, argument]`"
        fields.findings.error(fields.line("adapter"), f"adapter {adapter} needs a command", fix)
    if adapter is Adapter.COMMAND and command and PROMPT not in " ".join(command):
        message = "a command is told its task by its arguments only, and none of them is for it"
        fix = f"add the argument `{PROMPT}`, or speak the protocol of `adapter: jsonl`"
        fields.findings.error(fields.line("command"), message, fix)
    return adapter


def _model(fields: Fields, adapter: Adapter, *, foreign: bool) -> str:
    """Return the model; for pi with its provider, as pi takes one it guesses otherwise.

    A file of another program means a model of that program's provider, which pi cannot know.
    """
    text = fields.text("model")
    if text.lower() in {"false", "inherit"}:
        return ""
    if not text or "/" in text or adapter is not Adapter.PI:
        return text
    meant = "the program's own is used" if foreign else "pi guesses which is meant"
    message = f"the model {shown(text)} names no provider; {meant}"
    fields.findings.warn(fields.line("model"), message, _PROVIDER_FIX)
    return "" if foreign else text


def _thinking(fields: Fields) -> str:
    node = fields.node("thinking")
    if isinstance(node, Scalar) and node.plain and node.text.lower() == "false":
        return ""
    return fields.choice(THINKING, "thinking")


def _tools(fields: Fields, *, foreign: bool) -> tuple[str, ...] | None:
    if not fields.has("tools"):
        fields.node("tools")
        return None
    tools = tools_of(fields.words("tools"), fields.line("tools"), fields.findings)
    # Other programs do not know the question to a person, so their files cannot name it.
    return tuple(dict.fromkeys((*tools, "ask"))) if foreign and tools else tools


def _excluded(fields: Fields) -> tuple[str, ...]:
    names = ("disallowed_tools", "exclude_tools", "excluded_tools")
    line = next((fields.line(name) for name in names if fields.has(name)), 1)
    quiet = Findings(fields.findings.file)
    excluded = tools_of(fields.words(*names), line, quiet)
    for problem in quiet.problems:
        fields.findings.warn(line, problem.message.replace("left out", "not there to exclude"))
    return excluded


def _disabled(fields: Fields) -> bool:
    off = fields.flag("disabled")
    on = fields.flag("enabled")
    return off is True or on is False
