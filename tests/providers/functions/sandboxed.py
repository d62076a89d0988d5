"""Tools that run in the sandbox; it imports this file."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import msgspec

from remit import CallContext, EvidenceCandidate, ProviderError, ToolResult, tool
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
    threading.Event().wait()


@tool("box.slow", level="L2", sandbox={"limits": {"wall_ms": 300}})
def slow() -> None:
    """Takes too long."""
    threading.Event().wait()


@tool("box.loose", level="L2", sandbox={"limits": {"pids": 100_000}})
def loose() -> None:
    """Wants more than there is."""


@tool("box.vault", level="L2", sandbox=True, secrets=("BANK",))
def vault(ctx: CallContext, how: str) -> dict[str, object]:
    """Shows its secret wherever it can."""
    value = ctx.secret("BANK")
    ctx.log(f"logged {value}")
    if how == "fail":
        os.write(2, b"x" * (590 - len(value) // 2) + value.encode() + b"y" * (600 - len(value) // 2) + b"\n")
        os._exit(3)
    if how == "raise":
        ctx.refuse_secret("BANK")
        raise ProviderError(f"401 for {value}")
    places = [*Path("/proc").glob("[0-9]*/environ"), *Path("/proc").glob("[0-9]*/cmdline")]
    return {
        "length": len(value),
        "shown": [value, value.encode().hex()],
        "elsewhere": [str(place) for place in places if value.encode() in place.read_bytes()],
        "child": subprocess.run(["/bin/cat"], capture_output=True, check=True).stdout.decode(),
        "facts": [ctx.step, ctx.attempt, ctx.conversation, ctx.job],
    }
