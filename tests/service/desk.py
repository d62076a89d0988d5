"""A provider for calls from outside jobs, and a call whose process goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from remit import Remit, ToolResult
from remit.journal.event import HeadQuery
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.provider import CallContext
from tests.opened import OpenRemit

MAY = {"policy.rules": [{"effect": "allow", "tools": ["desk.*"]}]}
MUST_ASK = {"policy.rules": [{"effect": "ask", "tools": ["desk.*"]}]}
Act = Callable[[str, CallContext], Awaitable[None]]


async def at_once(_text: str, _ctx: CallContext) -> None:
    """Do nothing more."""


class Desk:
    """A provider whose only tool writes: into memory, which outlives the process that calls."""

    provider_id = "desk"

    def __init__(self, *, idempotent: bool = False, act: Act = at_once, requires: tuple[str, ...] = ()) -> None:
        self.written: list[str] = []
        self.keys: set[str] = set()
        self.act = act
        self._meta = ToolMeta(
            name="desk.write",
            provider_id="desk",
            description="Write.",
            input_schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
            capability_level=Level.L1,
            risk_level=Risk.WRITE,
            side_effects=True,
            idempotent=idempotent,
            requires=requires,
        )

    async def list_tools(self) -> list[ToolMeta]:
        return [self._meta]

    async def invoke(self, _name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        if not self._meta.idempotent or ctx.idempotency_key not in self.keys:
            self.keys.add(ctx.idempotency_key)
            self.written.append(args["text"])
        await self.act(args["text"], ctx)
        return ToolResult({"notes": len(self.written)})

    async def close(self) -> None:
        """Nothing is held."""


class Remembering(Desk):
    """One that can say the outcome of a call."""

    async def reconcile(self, _name: str, _args: dict[str, Any], ctx: CallContext) -> ToolResult | None:
        return ToolResult({"notes": len(self.written)}) if ctx.idempotency_key in self.keys else None


async def cut_off(remit_in: OpenRemit, desk: Desk, **given: Any) -> None:
    """Make a call whose process goes away after the effect and before its outcome is recorded."""
    began = asyncio.Event()

    async def hang(_text: str, _ctx: CallContext) -> None:
        began.set()
        await asyncio.Event().wait()

    desk.act = hang
    async with remit_in(providers=[desk], flags=MAY) as remit:
        call = asyncio.create_task(remit.call("desk.write", {"text": "x"}, **given))
        await began.wait()
        call.cancel()
        await asyncio.wait([call])
    desk.act = at_once


async def calls(remit: Remit) -> list[str]:
    """The states of calls that have streams of their own, the oldest first."""
    return [head.state for head in reversed(await remit.runtime.journal.heads(HeadQuery(kind="call")))]
