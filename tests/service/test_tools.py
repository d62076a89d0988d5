"""The tools that a principal may use."""

from __future__ import annotations

from remit import tool
from tests.opened import OpenRemit

RULES = [
    {"id": "not-ben", "effect": "deny", "tools": ["pad.write"], "callers": ["ben"]},
    {"id": "not-over-mcp", "effect": "deny", "tools": ["pad.read"], "callers": ["mcp:ann"]},
]


@tool("pad.write")
def write(text: str) -> str:
    """Write."""
    return text


@tool("pad.read", level="L0")
def read() -> str:
    """Read."""
    return ""


async def test_each_principal_is_offered_what_policy_may_let_it_use(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[write, read], flags={"policy.rules": RULES}) as remit:

        async def offered(principal: str, **given: object) -> set[str]:
            seen = await remit.service.tools.visible(principal, only=("pad.*",), **given)  # type: ignore[arg-type]
            assert seen.complete
            assert {one.name for one in seen.tools} == {"pad.write", "pad.read"}
            return {one.name for one in seen.tools if one.offered}

        assert await offered("ann") == {"pad.write", "pad.read"}
        assert await offered("ann", kind="mcp") == {"pad.write"}
        assert await offered("ben") == {"pad.read"}


async def test_a_tool_is_described_as_a_model_is_told(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[write]) as remit:
        found = await remit.service.tools.find("pad.write")
        assert found is not None
        assert (found.wire_name, found.description, found.definition) == ("pad__write", "Write.", None)
        assert found.annotations["readOnlyHint"] is False
        assert await remit.service.tools.known("pad.write") == found
        assert await remit.service.tools.find("pad.none") is None
