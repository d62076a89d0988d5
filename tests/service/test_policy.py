"""What policy says to a call, and why."""

from __future__ import annotations

from typing import Any

from remit import Run, recipe, tool
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


async def test_an_agents_own_tool_is_explained_before_an_agent_has_used_it(remit_in: OpenRemit) -> None:
    rules = [{"id": "no-sudo", "effect": "deny", "tools": ["agent.shell"], "when": {"command": {"prefix": "sudo "}}}]
    async with remit_in(flags={"policy.rules": rules}) as remit:

        async def effect(name: str, command: str) -> str:
            return (await remit.service.policy.explain(name, {"command": command}, principal="")).decision.effect

        for name in ("claude.bash", "codex.exec_command", "agent.shell"):
            assert (await effect(name, "sudo ls"), await effect(name, "ls")) == ("deny", "ask")
        assert (await remit.service.policy.explain("claude.nothing", {}, principal="")).decision.effect == "deny"


POTS = {
    "pads": {"per": "month", "zone": "Europe/Berlin", "sum": {"pad.*": "pages/10"}, "max": 5},
    "each": {"per": "day", "by": "principal", "calls": 3},
}
POT_RULES = [
    {"id": "write", "effect": "allow", "tools": ["pad.write"], "limit": {"pot": "pads"}},
    {"id": "stop", "effect": "deny", "tools": ["pad.*"], "limit": {"pot": "pads"}},
    {"id": "often", "effect": "deny", "limit": {"pot": "each"}},
]


@tool("pad.fill")
def fill(pages: int) -> int:
    """Fill."""
    return pages


async def test_pots_say_how_full_they_are_and_a_refusal_by_one_is_derived_from_the_record(remit_in: OpenRemit) -> None:
    rules = [{**rule, "tools": ["pad.fill"]} if rule["id"] == "write" else rule for rule in POT_RULES]
    flags = {"policy.rules": rules, "policy.pots": POTS}
    async with remit_in(tools=[fill], recipes=[fills], flags=flags) as remit:
        job = await remit.start(fills())
        refusal = await job
        assert "4 of 5 taken this month" in refusal
        found = {pot.pot: pot for pot in await remit.service.policy.pots()}
        assert (found["pads"].taken, found["pads"].max, found["pads"].calls) == ("4", "5", 1)
        assert found["pads"].words == "4 of 5 taken this month"
        assert (found["each"].taken, found["each"].calls) == ("", None)
        (refused,) = [one for one in await remit.service.policy.rulings(0, "stop") if one.verdict == "denied"]
        assert refused.step == "2"


@recipe("fills")
async def fills(run: Run) -> str:
    await run.call(fill, pages=40)
    return (await run.attempt("pad.fill", {"pages": 20})).reason
