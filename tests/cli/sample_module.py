"""The tools and recipes that the command line's tests run; loaded by path, as a user's own module is."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from remit import Run, recipe, tool


def shout(word: str) -> None:
    """Tell the test that a call is under way."""
    sys.stderr.write(f"{word}\n")
    sys.stderr.flush()


@tool("note.write")
def write_note(path: str, text: str) -> str:
    """Write a note."""
    Path(path).write_text(text, encoding="utf-8")
    return text.upper()


@tool("note.read", level="L0", version="2")
def read_note(path: str) -> str:
    """Read a note."""
    return Path(path).read_text(encoding="utf-8")


@tool("loud.print", level="L0")
def print_loudly() -> None:
    """Print where only the command's result belongs, itself and through a child."""
    print("printed by a tool")  # noqa: T201 - what must not reach stdout
    os.system("echo printed by a child")  # noqa: S605, S607 - the same, without Python's help


@tool("slow.forever", level="L0")
async def wait_forever() -> None:
    """Wait until cancelled."""
    shout("a read is under way")
    await asyncio.Event().wait()


@tool("slow.thread", level="L0", timeout=600)
def block_a_thread() -> None:
    """Block a thread that nobody can stop."""
    shout("a thread is blocked")
    read_end, _ = os.pipe()
    os.read(read_end, 1)


@tool("risky.write", timeout=600)
async def write_riskily(done: str) -> str:
    """Have side effects until the file `done` is there; a FIFO, so that nobody polls."""
    shout("a write is under way")
    return await asyncio.to_thread(Path(done).read_text)


@tool("bad.always", level="L0")
def fail(why: str) -> None:
    """Fail."""
    raise ValueError(why)


@recipe("greet")
async def greet(
    run: Run, name: str, times: int = 1, loud: bool = False, tags: list[str] | None = None
) -> dict[str, Any]:
    """Say hello.

    Calls nothing.
    """
    await run.uuid()
    return {"greeting": f"Hello {name}" * times, "loud": loud, "tags": tags or []}


@recipe("report")
async def report(run: Run) -> dict[str, str]:
    """Return a report."""
    await run.now()
    return {"report": "# All is well\n\nNothing to see."}


@recipe("chatty")
async def chatty(run: Run) -> int:
    """Print to stdout from everywhere."""
    print("printed by a recipe")  # noqa: T201 - what must not reach stdout
    await run.call("loud.print", {})
    return 7


@recipe("notes")
async def notes(run: Run, path: str, text: str = "hello") -> str:
    """Write a note, which asks."""
    return str((await run.call("note.write", {"path": path, "text": text})).value)


@recipe("file")
async def file(run: Run, path: str, content: str) -> str:
    """Write a file, which asks."""
    return str((await run.call("fs.write", {"path": path, "content": content})).value["change"])


@recipe("two_notes")
async def two_notes(run: Run, path: str) -> list[Any]:
    """Write two notes at once, each of which asks."""

    async def one(number: int) -> Any:
        return (await run.attempt("note.write", {"path": f"{path}{number}", "text": str(number)})).status

    return await run.gather(one(1), one(2))


@recipe("asks")
async def asks(run: Run) -> dict[str, Any]:
    """Ask a question."""
    answer = await run.confirm("Shall we go on?", details={"cost": 5})
    return {"approved": answer.approved, "by": answer.by, "reason": answer.reason}


@recipe("waits")
async def waits(run: Run, name: str = "go") -> Any:
    """Wait for a signal."""
    return await run.wait_signal(name)


@recipe("naps")
async def naps(run: Run, seconds: float = 0.01) -> str:
    """Sleep a little."""
    await run.sleep(seconds)
    return "rested"


@recipe("fails")
async def fails(run: Run, why: str = "no luck today") -> None:
    """Call a tool that fails."""
    await run.call("bad.always", {"why": why})


@recipe("forever")
async def forever(run: Run) -> None:
    """Call a tool that never answers."""
    run.progress("patience", 1, 2)
    await run.call("slow.forever", {})


@recipe("blocked")
async def blocked(run: Run) -> None:
    """Call a tool whose thread never ends."""
    await run.call("slow.thread", {})


@recipe("risky")
async def risky(run: Run, done: str) -> str:
    """Call a tool with side effects that ends when told."""
    return str((await run.call("risky.write", {"done": done})).value)
