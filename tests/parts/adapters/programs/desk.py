"""The Remit that the programs beside this file open: a tool that looks, one that asks, and one that is denied."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from remit import Remit, tool
from remit.clock import SystemClock
from remit.settings import load

RULES = [
    {"id": "ask", "effect": "ask", "tools": ["desk.write"]},
    {"id": "deny", "effect": "deny", "tools": ["desk.burn"]},
]


@tool("desk.look", level="L0")
async def look(at: str) -> str:
    """Look at something."""
    return at.upper()


@tool("desk.write")
async def write(text: str) -> str:
    """Write a line, which asks."""
    _append(text)
    return f"wrote {text}"


def _append(text: str) -> None:
    with Path("written").open("a", encoding="utf-8") as file:
        file.write(text + "\n")


@tool("desk.burn")
async def burn() -> None:
    """Burn the desk, which is denied."""
    Path("burnt").touch()


@asynccontextmanager
async def desk(*, approve: bool) -> AsyncIterator[Remit]:
    """A Remit in the current folder; with `approve`, a person approves whatever is asked."""
    flags = {"journal.url": "desk.db", "app.principal": "ann", "policy.rules": RULES}
    settings = load(cwd=Path.cwd(), env=os.environ, flags=flags)
    async with Remit(settings=settings, tools=[look, write, burn]) as remit:
        person = asyncio.create_task(_approve(remit)) if approve else None
        try:
            yield remit
        finally:
            if person is not None:
                person.cancel()


async def _approve(remit: Remit) -> None:
    while True:
        for question in await remit.service.confirmations.pending():
            await remit.service.confirmations.decide(question.confirmation, "approve", by="bob")
        await SystemClock().sleep(0.02)
