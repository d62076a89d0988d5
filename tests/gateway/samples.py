"""Tools that most gateway tests call."""

from __future__ import annotations

from remit.tools.function import tool

ran: list[object] = []
"""What the tools below were called with, newest last; `clean` empties it before each test."""


@tool("math.add", level="L0")
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    ran.append((a, b))
    return a + b


@tool("note.write", level="L1")
async def write(text: str, times: int = 1) -> dict[str, int]:
    """Write a note."""
    ran.append((text, times))
    return {"written": times}


@tool("note.set", level="L1", idempotent=True)
async def put(text: str) -> str:
    """Write a note, once however often it is called."""
    ran.append(text)
    return text


ALLOW = {"id": "writes-run", "effect": "allow", "tools": ["*"]}
"""A rule that lets everything run."""
