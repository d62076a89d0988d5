"""Which attempt follows a failed one."""

from __future__ import annotations

from typing import Any

import pytest

from remit.codes import Code
from remit.errors import SettingsError
from remit.models.fallback import Fallbacks, Next, fallbacks_of, retried_of
from remit.models.message import Message, Text, user
from remit.models.prompt import Ask, Sampling, ToolSpec, toolset_of
from remit.models.thread import thread_of
from remit.models.wires.anthropic import AnthropicMessages
from remit.models.wires.openai_responses import OpenAIResponses
from remit.tools.meta import Retry

RETRY = Retry(attempts=3, first_delay_ms=100)
A, B, C = "openai:a", "anthropic:b", "ollama:c"


@pytest.mark.parametrize(
    ("table", "current", "code", "failed", "expected"),
    [
        ({}, A, Code.MODEL_OVERLOADED, 1, Next(100)),
        ({}, A, Code.MODEL_OVERLOADED, 2, Next(0, B)),
        ({}, B, Code.MODEL_FAILED, 1, Next(100)),
        ({}, B, Code.MODEL_FAILED, 2, Next(0, C)),
        ({}, C, Code.MODEL_FAILED, 2, Next(200)),
        ({}, C, Code.MODEL_FAILED, 3, None),
        ({}, A, Code.MODEL_QUOTA, 1, Next(0, B)),
        ({}, C, Code.MODEL_QUOTA, 1, None),
        ({}, A, Code.MODEL_AUTH, 1, None),
        ({"on": ["auth"]}, A, Code.MODEL_AUTH, 1, Next(0, B)),
        ({"on": ["auth"]}, A, Code.MODEL_BUSY, 3, None),
        ({"after": 1}, A, Code.MODEL_BUSY, 1, Next(0, B)),
        ({"models": ["google:*"]}, A, Code.MODEL_BUSY, 2, Next(200)),
        ({"recipes": ["other"]}, A, Code.MODEL_BUSY, 2, Next(200)),
        ({"recipes": ["tri*"]}, A, Code.MODEL_BUSY, 2, Next(0, B)),
        ({"to": [A, B]}, A, Code.MODEL_BUSY, 2, Next(0, B)),
        ({}, A, Code.TOOL_TIMEOUT, 1, Next(100)),
        ({}, A, Code.POLICY_DENIED, 1, None),
    ],
)
def test_what_follows_a_fault(table: dict[str, Any], current: str, code: Code, failed: int, expected: Next) -> None:
    rules = fallbacks_of(({"to": [B, C], **table},))
    assert Fallbacks(rules, RETRY).after(A, "triage", current, code, failed) == expected


def test_the_settings_say_which_faults_are_retried() -> None:
    fallbacks = Fallbacks((), RETRY, ["quota"])
    assert fallbacks.after(A, "", A, Code.MODEL_QUOTA, 1) == Next(100)
    assert fallbacks.after(A, "", A, Code.MODEL_BUSY, 1) is None


def test_a_name_that_is_no_fault_is_refused() -> None:
    with pytest.raises(SettingsError, match="'bussy' is not a fault"):
        retried_of(["busy", "bussy"])


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "missing required field `to`"),
        ({"to": []}, "length >= 1"),
        ({"to": ["gpt"]}, "names no model"),
        ({"to": [B], "on": ["slow"]}, "Invalid enum value 'slow'"),
        ({"to": [B], "after": 0}, ">= 1"),
        ({"to": [B], "model": "x"}, "there is no key model"),
    ],
)
def test_a_rule_that_does_not_fit_is_refused(table: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=r"models\.fallbacks, rule 1: ") as refused:
        fallbacks_of((table,))
    assert words in refused.value.message


def test_a_model_that_a_chain_names_twice_is_asked_once() -> None:
    fallbacks = Fallbacks(fallbacks_of(({"to": [B, C, B]},)), RETRY)
    assert [fallbacks.past(A, "", current) for current in (A, B, C)] == [B, C, ""]


def _ask(cache: Any) -> Ask:
    thread = thread_of([Message("system", (Text("Be brief."),)), user("?")])
    tools = toolset_of([ToolSpec(name="t", description="", schema={"type": "object", "properties": {}})])
    return Ask(thread=thread, tools=tools, sampling=Sampling(cache=cache))


@pytest.mark.parametrize(
    ("cache", "system", "last"),
    [
        (None, None, {"type": "ephemeral"}),
        ("off", None, None),
        ("short", {"type": "ephemeral"}, {"type": "ephemeral"}),
        ("long", {"type": "ephemeral", "ttl": "1h"}, {"type": "ephemeral", "ttl": "1h"}),
    ],
)
def test_anthropic_is_told_what_to_keep(cache: Any, system: Any, last: Any) -> None:
    body = AnthropicMessages().body("m", _ask(cache), "anthropic/m")
    assert body["system"][0].get("cache_control") == system
    assert body["messages"][-1]["content"][-1].get("cache_control") == last


@pytest.mark.parametrize(
    ("cache", "fields"),
    [
        (None, set()),
        ("off", set()),
        ("short", {"prompt_cache_key"}),
        ("long", {"prompt_cache_key", "prompt_cache_retention"}),
    ],
)
def test_openai_is_told_what_to_keep(cache: Any, fields: set[str]) -> None:
    body = OpenAIResponses().body("m", _ask(cache), "openai/m")
    assert {name for name in body if "cache" in name} == fields
    assert body.get("prompt_cache_retention", "24h") == "24h"
