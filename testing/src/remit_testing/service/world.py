"""A journal in memory with a few tools and recipes, and the service under test over it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from remit.codes import Code
from remit.errors import RemitError
from remit.jobs.recipe import recipe
from remit.jobs.run import Run
from remit.record.views import JobRow
from remit.service.service import Service
from remit.settings import load
from remit.tools.function import tool
from remit.tools.provider import CallContext
from remit.wiring.runtime import open_runtime

Reach = Callable[[Service], AbstractAsyncContextManager[Service]]
"""Opens the service under test, given the one over the journal."""
Check = Callable[[Reach], Awaitable[None]]
_RULES: Final = [
    {"id": "may-look", "effect": "allow", "tools": ["desk.look", "desk.book", "desk.unbook", "desk.draw"]},
    {"id": "must-ask", "effect": "ask", "tools": ["desk.write"]},
]

SCRIPT: Final = """
- {say: Let me look., call: [{tool: desk.look, args: {at: moon}}]}
- {say: It is the moon.}
- {expect: sure, call: [{tool: desk.write, args: {text: sure}}]}
- {expect: hurry, say: Yes.}
"""
"""The answers to agents."""


@tool("desk.look", level="L0")
def look(at: str) -> str:
    """Look at something."""
    return at.upper()


@tool("desk.write")
def write(text: str, copies: int = 1) -> str:
    """Write something, which asks."""
    return text * copies


@tool("desk.book")
def book() -> str:
    """Book a place."""
    return "booked"


@tool("desk.unbook")
def unbook() -> None:
    """Fail to undo a booking."""
    raise ValueError("the desk is closed")


@tool("desk.draw", level="L0")
async def draw(text: str, ctx: CallContext) -> dict[str, Any]:
    """Draw something, and keep it beside the record."""
    data = text.encode()
    if ctx.keeper is None:
        raise ValueError("nothing keeps it")
    digest = await ctx.keeper.put(data)
    drawn = {"path": "a/drawing", "bytes": len(data), "sha256": digest, "media_type": "image/x-test"}
    return {"artifacts": [drawn]}


@recipe("draws")
async def draws(run: Run, text: str) -> None:
    """Draw something."""
    await run.call("desk.draw", {"text": text})


@recipe("looks")
async def looks(run: Run, at: str, times: int = 1) -> dict[str, Any]:
    """Look at something.

    Calls a tool.
    """
    values = [(await run.call("desk.look", {"at": at})).value for _ in range(times)]
    return {"found": values}


@recipe("writes")
async def writes(run: Run, text: str = "hello") -> str:
    """Write, which asks a person."""
    return str((await run.call("desk.write", {"text": text})).value)


@recipe("keeps")
async def keeps(run: Run, content: str) -> None:
    """Write a file, which asks a person."""
    await run.call("fs.write", {"path": "kept.txt", "content": content})


@recipe("waits")
async def waits(run: Run) -> Any:
    """Wait for a signal."""
    return await run.wait_signal("go")


@recipe("fails")
async def fails(run: Run) -> None:
    """Fail."""
    await run.now()
    raise ValueError("no luck today")


@recipe("regrets")
async def regrets(run: Run) -> None:
    """Fail after a call whose undo fails as well."""
    await run.call("desk.book", {}, undo=("desk.unbook", {}))
    raise ValueError("it was no good")


class World:
    """The service under test, and the one over the journal."""

    def __init__(self, service: Service, local: Service) -> None:
        self.service = service
        self.local = local

    async def at_rest(self, job: str) -> JobRow:
        """A job once it has ended, or waits for something from outside."""
        (row,) = await self.local.jobs.settled([job])
        return row

    async def ran(self, name: str, **inputs: Any) -> str:
        """A job that has ended or waits."""
        job = await self.service.jobs.start_named(name, inputs)
        await self.at_rest(job)
        return job


def _write_script(folder: Path) -> None:
    (folder / "script.yaml").write_text(SCRIPT, encoding="utf-8")


@asynccontextmanager
async def world(reach: Reach) -> AsyncIterator[World]:
    """An empty journal, a worker on its jobs, and the service under test."""
    with TemporaryDirectory() as folder:
        _write_script(Path(folder))
        flags = {
            "journal.url": ":memory:",
            "app.principal": "ann",
            "policy.rules": _RULES,
            "models.default": "scripted:script.yaml",
        }
        settings = load(cwd=Path(folder), env={}, flags=flags)
        tools, recipes = (look, write, book, unbook, draw), (looks, writes, keeps, waits, fails, regrets, draws)
        runtime = open_runtime(settings, tools=tools, recipes=recipes)
        runtime.engine.start()
        try:
            async with reach(runtime.service) as service:
                yield World(service, runtime.service)
        finally:
            await runtime.close()


@contextmanager
def refused(code: Code, kind: type[RemitError]) -> Iterator[None]:
    """The block raises this very error, with this code."""
    raised: RemitError | None = None
    try:
        yield
    except RemitError as error:
        raised = error
    assert raised is not None, f"was not refused with {code.name}"
    assert raised.code is code, f"was refused with {raised}, not with {code.name}"
    assert isinstance(raised, kind), f"{raised} is a {type(raised).__name__}, not a {kind.__name__}"
    assert raised.message
