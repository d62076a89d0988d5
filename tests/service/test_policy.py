"""What policy says to a call, and why."""

from __future__ import annotations

from typing import Any

from remit import tool
from tests.opened import OpenRemit


@tool("pad.write")
def write(text: str) -> str:
    """Write."""
    return text


async def test_policy_explains_a_call_by_name_or_key(remit_in: OpenRemit) -> None:
    rules = [{"id": "no-pads", "effect": "deny", "tools": ["pad.write"], "callers": ["job:pads"]}]
    async with remit_in(tools=[write], flags={"policy.rules": rules}) as remit:

        async def effect(name: str, **caller: Any) -> str:
            return (await remit.service.policy.explain(name, {"text": "x"}, principal="bob", **caller)).decision.effect

        assert await effect("pad.write") == await effect("pad_write") == "ask"
        assert await effect("pad.write", kind="job", recipe="pads") == "deny"
        assert await effect("pad.erase") == "deny"


async def test_a_call_that_names_nobody_is_this_processs_own(remit_in: OpenRemit) -> None:
    rules = [{"id": "not-eve", "effect": "deny", "tools": ["pad.*"], "callers": ["session:eve"]}]
    async with remit_in(tools=[write], flags={"policy.rules": rules, "app.principal": "eve"}) as remit:
        explain = remit.service.policy.explain
        assert (await explain("pad.write", {"text": "x"}, principal="")).decision.rule_id == "not-eve"
        assert (await explain("pad.write", {"text": "x"}, principal="bob")).decision.effect == "ask"
