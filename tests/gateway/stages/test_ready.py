"""Ready: are the dependencies there that the tool requires?"""

from __future__ import annotations

from remit.codes import Code
from remit.gateway.readiness import DependencyState
from remit.journal.kinds import GateRefused
from remit.tools.meta import Level
from tests.gateway.world import odd, opened, state

NO = {"id": "nothing", "effect": "deny", "tools": ["*"]}


async def test_a_tool_whose_dependencies_are_ready_runs() -> None:
    tool = odd(lambda _args, _ctx: None, requires=("mcp", "disk"))
    async with opened(tool, required={"mcp": state(ready=True)}, optional={"disk": state(ready=True)}) as world:
        assert (await world.call()).code is Code.TOOL_EXEC_FAILED  # it was called, and answered nonsense


async def test_a_tool_that_lacks_one_is_refused_with_what_is_missing() -> None:
    tool = odd(lambda _args, _ctx: None, requires=("mcp", "disk"))
    parts = {"mcp": state(ready=False, detail="npx is not there")}
    async with opened(tool, required={"disk": state(ready=True)}, optional=parts) as world:
        outcome = await world.call()
        assert (outcome.status, outcome.code) == ("blocked", Code.MCP_REQUIRED_UNAVAILABLE)
        assert outcome.reason == "odd.tool needs mcp (npx is not there)"
        refused = await world.last(GateRefused)
        assert (refused.stage, refused.rule_id, refused.code) == ("ready", "default:L0", "MCP_REQUIRED_UNAVAILABLE")


async def test_a_dependency_nobody_knows_is_missing() -> None:
    async with opened(odd(lambda _args, _ctx: None, requires=("gpu",))) as world:
        assert (await world.call()).reason == "odd.tool needs gpu (DEP_UNKNOWN)"


async def test_a_tool_that_requires_nothing_does_not_ask_the_dependencies() -> None:
    async def probe() -> DependencyState:
        raise AssertionError("nobody needs to know")

    async with opened(odd(lambda _args, _ctx: None), required={"mcp": probe}) as world:
        assert (await world.call()).code is Code.TOOL_EXEC_FAILED


async def test_nobody_is_asked_to_approve_what_cannot_run_anyway() -> None:
    tool = odd(lambda _args, _ctx: None, Level.L1, requires=("mcp",))
    async with opened(tool, required={"mcp": state(ready=False)}) as world:
        assert (await world.call()).code is Code.MCP_REQUIRED_UNAVAILABLE
        assert await world.confirmations.pending() == []


async def test_a_denied_call_never_asks_the_dependencies() -> None:
    asked: list[str] = []

    async def probe() -> DependencyState:
        asked.append("mcp")
        return DependencyState(ready=True)

    tool = odd(lambda _args, _ctx: None, requires=("mcp",))
    async with opened(tool, required={"mcp": probe}, rules=[NO]) as world:
        assert (await world.call()).code is Code.POLICY_DENIED
        assert asked == []
        world.under([])
        await world.call()
        assert asked == ["mcp"]


async def test_an_approval_is_kept_while_a_dependency_is_down() -> None:
    up = [False]

    async def probe() -> DependencyState:
        return DependencyState(ready=up[0])

    up[0] = True
    async with opened(odd(lambda _args, _ctx: None, Level.L1, requires=("mcp",)), required={"mcp": probe}) as world:
        pending = await world.call()
        await world.approve(pending)
        up[0] = False
        assert (await world.again(pending, "odd.tool")).code is Code.MCP_REQUIRED_UNAVAILABLE
        up[0] = True
        assert (await world.again(pending, "odd.tool")).code is Code.TOOL_EXEC_FAILED
