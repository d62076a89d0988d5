"""A desk whose tools tickets call, and one batch of a runner."""

from __future__ import annotations

import asyncio
from typing import Any

from remit import Remit, Retry, tool
from remit.parts.tickets.runner import ExecutorReport, RunnerConfig
from remit.parts.tickets.ticket import Ticket
from remit.parts.tickets.tickets import tickets_of

EVENT = {"type": "message", "thread_id": "t1", "content": "hello", "actor": "ann"}
REPLIES = {"tickets.derive_replies": True}
MAY = {"policy.rules": [{"effect": "allow", "tools": ["desk.pay"]}]}
CALLS: list[str] = []


@tool("desk.look", level="L0")
def look(what: str) -> dict[str, str]:
    """Look something up."""
    CALLS.append(what)
    return {"found": what.upper()}


@tool("desk.break", level="L0")
def break_it() -> str:
    """Fail."""
    raise RuntimeError("it broke")


@tool("desk.write", level="L1")
def write(text: str) -> str:
    """Write something."""
    CALLS.append(f"write {text}")
    return text


@tool("desk.pay", confirm=False, output_schema={"type": "integer"})
def pay(what: str) -> str:
    """Pay, and answer with what is no receipt."""
    CALLS.append(what)
    return "paid"


@tool("desk.wait", level="L0")
async def wait() -> str:
    """Never answer."""
    await asyncio.get_running_loop().create_future()
    return ""


@tool("desk.away", level="L0", retry=Retry(first_delay_ms=1))
def away() -> str:
    """Fail in a way that may pass."""
    CALLS.append("away")
    raise ConnectionError("nobody answers")


@tool("desk.ask", level="L0")
async def ask() -> str:
    """Answer once somebody has rung."""
    CALLS.append("asks")
    await RUNG[-1].wait()
    return "yes"


TOOLS = [look, break_it, write, pay, wait, away, ask]
RUNG: list[asyncio.Event] = []


async def tool_ticket(remit: Remit, *steps: Any, **more: Any) -> Ticket:
    given = {"event": EVENT, "tool_steps": list(steps), **more}
    return await tickets_of(remit.service).create({"type": "TOOL", "event": EVENT, "tool_input": given})


async def worked(remit: Remit, **config: Any) -> ExecutorReport:
    """One batch."""
    tickets = tickets_of(remit.service)
    runner = tickets.runner(RunnerConfig(owner="worker", **config), tickets.executor())
    return await runner.run(asyncio.Event(), once=True)


def step(tool: str, **args: Any) -> dict[str, Any]:
    return {"tool_name": tool, "args": args}
