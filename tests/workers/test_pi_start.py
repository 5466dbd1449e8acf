from __future__ import annotations

import pytest

from crewd.core.spec import AgentSpec
from crewd.core.words import Cause
from crewd.workers.pi import PiAdapter
from crewd.workers.pi_causes import trouble
from crewd.workers.pi_keys import OWN
from crewd.workers.pi_start import EXTENSION, arguments
from tests.support.pi_golden import a_pi_start


def after(words: tuple[str, ...], option: str) -> str:
    return words[words.index(option) + 1]


def test_the_extension_is_there_and_the_only_one() -> None:
    words = arguments(a_pi_start())
    assert after(words, "--extension") == str(EXTENSION)
    assert EXTENSION.is_file()
    assert {"--no-extensions", "--no-skills", "--no-session"} <= {*words}
    assert "--no-context-files" not in words


def test_an_agent_s_words_tools_and_model_are_told() -> None:
    agent = AgentSpec(
        name="a",
        system_prompt="Be brief.",
        model="openai/gpt",
        thinking="high",
        tools=("read", "grep", "ask"),
        excluded_tools=("web", "submit_result"),
    )
    words = arguments(a_pi_start(agent))
    assert after(words, "--model") == "openai/gpt:high"
    assert after(words, "--tools") == "read,grep,ask,submit_result"
    assert after(words, "--exclude-tools") == "web"
    assert after(words, "--system-prompt") == "Be brief."
    assert "--no-context-files" in words
    assert after(arguments(a_pi_start(agent, "x/y:8b")), "--model") == "x/y:8b:high"


def test_an_agent_without_tools_can_still_ask_and_hand_in() -> None:
    agent = AgentSpec(name="a", tools=(), append_system_prompt=True, system_prompt="More.")
    words = arguments(a_pi_start(agent))
    assert after(words, "--tools") == "ask,submit_result"
    assert after(words, "--append-system-prompt") == "More."


def test_an_agent_that_only_reads_has_no_tools_that_change_files() -> None:
    words = arguments(a_pi_start(AgentSpec(name="a", read_only=True)))
    assert after(words, "--exclude-tools") == "edit,write"
    assert "--tools" not in words


def test_only_the_keys_of_the_model_s_provider_are_offered() -> None:
    adapter = PiAdapter()
    assert adapter.variables("groq/x:low") == (*OWN, "GROQ_API_KEY")
    assert adapter.variables("scripted/x") == OWN
    assert {"OPENAI_API_KEY", "HF_TOKEN"} <= {*adapter.variables("")}
    assert len({*adapter.variables("")}) == len(adapter.variables(""))


@pytest.mark.parametrize(
    ("words", "cause", "retryable"),
    [
        ('429: {"message":"slow down"}', Cause.THROTTLED, True),
        ('429: {"error":{"message":"x","code":"insufficient_quota"}}', Cause.QUOTA, False),
        ("503 status code (no body)", Cause.TRANSIENT, True),
        ('529 {"type":"error","error":{"message":"Overloaded"}}', Cause.TRANSIENT, True),
        ("400: prompt is too long: 213462 tokens > 200000", Cause.CONTEXT_OVERFLOW, False),
        ("400 the author timed out after 512 ms", Cause.REPORTED, False),
        ("400 Your credit balance is too low", Cause.BILLING, False),
        ("402: {}", Cause.BILLING, False),
        ("403 Forbidden", Cause.AUTH, False),
        ("404: model_not_found", Cause.MODEL_UNKNOWN, False),
        ("read ECONNRESET", Cause.TRANSIENT, True),
        ("fetch failed", Cause.TRANSIENT, True),
        ("Rate limit reached", Cause.THROTTLED, True),
        ("the author wrote 5000 words in 512 ms", Cause.REPORTED, True),
        ("512ms is all it took", Cause.REPORTED, True),
        ("", Cause.REPORTED, True),
    ],
)
def test_a_failed_call_has_a_cause(words: str, cause: Cause, *, retryable: bool) -> None:
    found = trouble(words)
    assert (found.cause, found.retryable) == (cause, retryable)
    assert found.message


def test_the_provider_s_own_words_are_told() -> None:
    nested = '529 {"type":"error","error":{"message":"Overloaded"}}'
    assert trouble(nested).message == "Overloaded (HTTP 529)"
    assert trouble("400: no JSON {").message == "no JSON { (HTTP 400)"
    assert trouble('500: {"message": 7}').message == '{"message": 7} (HTTP 500)'
