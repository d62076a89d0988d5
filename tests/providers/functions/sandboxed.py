"""Tools that run in the sandbox; it imports this file."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import msgspec

from remit import EvidenceCandidate, ProviderError, ToolResult, tool
from remit.codes import Code


class Point(msgspec.Struct):
    x: int
    y: int = 0


@tool("box.look", level="L2", sandbox=True)
def look(path: str) -> dict[str, object]:
    """What can be seen of the machine."""
    return {
        "there": Path(path).exists(),
        "pid": os.getpid(),
        "uid": os.getuid(),
        "secret": os.environ.get("REMIT_TEST_SECRET"),
        "interfaces": [line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]],
    }


@tool("box.move", level="L2", sandbox=True)
async def move(point: Point, by: int) -> Point:
    """Takes and gives values of its own."""
    sys.stdout.write("moving\n")  # goes to stderr, never into the answer
    return Point(point.x + by, point.y + by)


@tool("box.keep", level="L2", sandbox=True)
def keep() -> ToolResult:
    """Gives evidence."""
    return ToolResult("kept", (EvidenceCandidate(kind="tool_output", source="box", retrieved_at=1, data=b"\xff"),))


@tool("box.fail", level="L2", sandbox=True)
def fail(how: str) -> dict[str, float]:
    """Fails."""
    if how == "refuse":
        raise ProviderError("not today", cause=Code.NetworkError)
    if how == "nan":
        return {"mean": float("nan")}
    if how == "die":
        os.write(2, b"last words\n")
        os._exit(7)
    raise ValueError("no good")


@tool("box.hang", level="L2", sandbox=True)
def hang(marker: str) -> None:
    """Never ends."""
    os.write(2, marker.encode() + b"\n")
    threading.Event().wait(60)


@tool("box.slow", level="L2", sandbox={"limits": {"wall_ms": 300}})
def slow() -> None:
    """Takes too long."""
    threading.Event().wait(60)


@tool("box.loose", level="L2", sandbox={"limits": {"pids": 100_000}})
def loose() -> None:
    """Wants more than there is."""
