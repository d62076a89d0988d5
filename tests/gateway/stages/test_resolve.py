"""Resolve: the tool behind the name."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from remit.canonical import digest
from remit.codes import Code
from remit.gateway.call import asked
from remit.journal.kinds import UNSET, GateRefused, ToolInvocationStarted
from remit.tools.function import tool
from tests.gateway.samples import ALLOW, add
from tests.gateway.world import ALICE, meta, odd, opened, state


@tool("mcp.git.log", level="L0")
async def log(branch: str) -> str:
    """Show a branch."""
    return f"log of {branch}"


@tool("mcp.git.diff", level="L0")
async def diff(branch: str) -> str:
    """Compare a branch."""
    return f"diff of {branch}"


@pytest.mark.parametrize("name", ["math.add", "math_add", "math__add"])
async def test_a_full_name_a_key_and_the_name_models_see_mean_the_same_tool(name: str) -> None:
    async with opened(add) as world:
        assert (await world.call(name, {"a": 1, "b": 2})).value == 3
        assert (await world.last(ToolInvocationStarted)).tool_name == "math.add"


async def test_what_was_asked_for_stays_bound_where_it_was_worded_differently() -> None:
    async with opened(add) as world:
        args = {"a": 1, "b": 2}
        await world.call("math.add", args)
        assert not (await world.last(ToolInvocationStarted)).request_hash
        await world.call("math_add", args)
        assert (await world.last(ToolInvocationStarted)).request_hash == asked("math_add", digest(args))


async def test_a_key_of_several_tools_takes_one_from_the_arguments_and_does_not_pass_the_choice_on() -> None:
    async with opened(log, diff) as world:
        args = {"operation": "diff", "branch": "x"}
        assert (await world.call("git", args)).value == "diff of x"
        started = await world.last(ToolInvocationStarted)
        assert started.tool_name == "mcp.git.diff"
        assert await world.value(started, "args") == {"branch": "x"}
        assert started.arguments_hash == digest({"branch": "x"})
        assert started.request_hash == asked("git", digest(args))
        assert args == {"operation": "diff", "branch": "x"}


async def test_a_key_of_several_tools_without_a_choice_is_refused_with_the_choices() -> None:
    async with opened(log, diff) as world:
        outcome = await world.call("git", {"branch": "x"})
        assert (outcome.status, outcome.code) == ("blocked", Code.INVALID_TOOL_STEP)
        assert "diff, log" in outcome.remedy


async def test_an_unknown_tool_is_denied_by_default_and_recorded_with_who_asked_under_which_policy() -> None:
    async with opened(add, rules=[ALLOW]) as world:
        outcome = await world.call("math.ad", {"a": 1})
        assert (outcome.status, outcome.code) == ("blocked", Code.UNKNOWN_TOOL)
        assert "math.add" in outcome.remedy
        assert outcome.invocation_id is None
        (refusal,) = await world.recorded()
        assert isinstance(refusal, GateRefused)
        assert [msgspec.structs.replace(refusal, args=UNSET)] == [
            GateRefused(
                step="1",
                tool_name="math.ad",
                code="UNKNOWN_TOOL",
                reason=outcome.reason,
                remedy=outcome.remedy,
                stage="resolve",
                arguments_hash=digest({"a": 1}),
                principal=ALICE,
                rule_id="default:unknown-tool",
                policy_hash=world.policy.hash,
                policy_kept=True,
            )
        ]
        assert isinstance(refusal.args, msgspec.Raw)
        assert msgspec.json.decode(refusal.args) == {"a": 1}


async def test_an_unknown_tool_requires_every_required_dependency() -> None:
    down = state(ready=False, detail="no socket")
    async with opened(add, required={"mcp": down, "disk": state(ready=True)}) as world:
        outcome = await world.call("mcp.git.log")
        assert (outcome.status, outcome.code) == ("blocked", Code.MCP_REQUIRED_UNAVAILABLE)
        assert "mcp (no socket)" in outcome.reason
        assert "disk" not in outcome.reason
        assert (await world.call("math.add", {"a": 1, "b": 2})).ok


async def test_an_optional_dependency_makes_no_unknown_tool_known() -> None:
    async with opened(add, optional={"mcp": state(ready=False)}) as world:
        assert (await world.call("mcp.git.log")).code is Code.UNKNOWN_TOOL


async def test_a_tool_with_an_unusable_schema_is_withheld() -> None:
    async with opened(odd(lambda _args, _ctx: None, input_schema={"type": "strnig"})) as world:
        outcome = await world.call()
        assert (outcome.status, outcome.code) == ("blocked", Code.TOOL_QUARANTINED)
        assert (await world.last(GateRefused)).stage == "resolve"


@pytest.mark.parametrize("args", [[1], "text", 5, ["operation"]])
async def test_arguments_that_are_no_object_are_refused(args: Any) -> None:
    async with opened(log, diff, add) as world:
        for name in ("math.add", "git", "nobody.knows"):
            outcome = await world.call(name, args)
            assert (outcome.status, outcome.code) == ("blocked", Code.INVALID_TOOL_ARGS)


@pytest.mark.parametrize("name", ["\ud800", "x" * 10_000, "a.b\n\x1b[31m"])
async def test_a_name_no_tool_can_have_is_refused_and_recorded_in_short(name: str) -> None:
    async with opened(add) as world:
        assert (await world.call(name)).code is Code.UNKNOWN_TOOL
        assert len((await world.last(GateRefused)).tool_name) <= 200


async def test_a_provider_that_cannot_list_its_tools_is_named() -> None:
    class Broken(type(odd(lambda _args, _ctx: None))):  # type: ignore[misc] # a scripted provider that fails early
        async def list_tools(self) -> Any:
            raise ConnectionError("password=hunter2 refused")

    async with opened(Broken([meta()], lambda _args, _ctx: None)) as world:
        outcome = await world.call()
        assert outcome.code is Code.UNKNOWN_TOOL
        assert "odd" in outcome.reason
        assert "hunter2" not in outcome.reason
