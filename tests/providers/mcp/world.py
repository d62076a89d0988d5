"""Servers on strings, and providers in front of them, for the tests of the MCP client."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from remit.journal.journal import Journal
from remit.journal.sqlite.store import MEMORY, SqliteStore
from remit.process.child import Launch
from remit.providers.mcp.oauth import ServerLogin
from remit.providers.mcp.provider import McpProvider
from remit.settings.mcp import McpServer
from remit.settings.sections.mcp import McpSettings
from remit.tools.pins import Pins
from remit_testing.clock import ManualClock
from tests.patience import PATIENCE_S

PUPPET: Final = Path(__file__).parent / "servers" / "puppet.py"


def tool(name: str, **changes: Any) -> dict[str, Any]:
    """A raw definition."""
    return {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}, **changes}


TOOLS: Final = [tool(name) for name in ("echo", "hang", "die", "count", "twice", "wrong", "last")]


class Loaded:
    """RandomSource that always gives the middle."""

    def number(self) -> float:
        return 0.5

    def uuid(self) -> UUID:
        return UUID(int=0)


class Strings:
    """What puppets report, and the way to tell them what to do; the newest one is meant."""

    def __init__(self) -> None:
        self._reports: list[dict[str, Any]] = []
        self._news = asyncio.Condition()
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=1 << 26)

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._server.wait_closed()

    def command(self, **plan: Any) -> tuple[str, ...]:
        """What starts a puppet on these strings."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        plan.setdefault("tools", TOOLS)
        return (sys.executable, "-I", "-S", str(PUPPET), str(port), json.dumps(plan))

    async def report(self, wanted: Callable[[dict[str, Any]], bool], number: int = 1) -> dict[str, Any]:
        """The report, of those so far and to come, that is the so-many-th that is wanted."""
        async with asyncio.timeout(PATIENCE_S), self._news:
            while len(found := [each for each in self._reports if wanted(each)]) < number:
                await self._news.wait()
        return found[number - 1]

    async def started(self, number: int = 1) -> dict[str, Any]:
        """The start of the so-many-th puppet: `pid`, and `started` with `env` and `cwd`."""
        return await self.report(lambda each: "started" in each, number)

    async def heard(self, method: str, number: int = 1) -> dict[str, Any]:
        """The so-many-th message of a method that a puppet heard."""
        report = await self.report(lambda each: each.get("message", {}).get("method") == method, number)
        message: dict[str, Any] = report["message"]
        return message

    def times(self, method: str) -> int:
        """How often puppets have heard a method so far."""
        return sum(each.get("message", {}).get("method") == method for each in self._reports)

    def order(self, **order: Any) -> None:
        """Have the newest puppet do something."""
        self._writers[-1].write(json.dumps(order).encode() + b"\n")

    def all_order(self, **order: Any) -> None:
        """Have every puppet do something."""
        for writer in self._writers:
            writer.write(json.dumps(order).encode() + b"\n")

    async def kill(self, number: int = 1) -> int:
        """SIGKILL the so-many-th puppet; its pid."""
        pid: int = (await self.started(number))["pid"]
        os.kill(pid, signal.SIGKILL)
        return pid

    async def idle(self) -> None:
        """Wait until every puppet has let go of its strings."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._writers.append(writer)
        try:
            while line := await reader.readline():
                async with self._news:
                    self._reports.append(json.loads(line))
                    self._news.notify_all()
        except ConnectionResetError:
            pass  # it was killed with orders unread
        finally:
            self._writers.remove(writer)
            writer.close()


class World:
    """A journal with pins, a clock that stands still, and the strings of puppets."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.journal = Journal(SqliteStore(MEMORY, self.clock), self.clock)
        self.strings = Strings()
        self.providers: list[McpProvider] = []

    def pins(self, *, trust: bool = True) -> Pins:
        return Pins(self.journal, trust=trust, principal="tester")

    def server(self, plan: dict[str, Any] | None = None, **entry: Any) -> McpServer:
        """A server's entry; a puppet with this plan unless it says otherwise."""
        said: dict[str, Any] = {"name": "puppet"}
        if "command" not in entry and "url" not in entry:
            said["command"] = self.strings.command(**(plan or {}))
        return McpServer(**(said | entry))

    def provider(
        self,
        server: McpServer | None = None,
        plan: dict[str, Any] | None = None,
        *,
        trust: bool = True,
        login: ServerLogin | None = None,
        launch: Launch | None = None,
        **settings: Any,
    ) -> McpProvider:
        """A provider that the world closes."""
        made = McpProvider(
            server or self.server(plan),
            McpSettings(**settings),
            self.pins(trust=trust),
            clock=self.clock,
            chance=Loaded(),
            login=login,
            launch=launch,
        )
        self.providers.append(made)
        return made


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    """A world; in the end nothing of it is left."""
    before = asyncio.all_tasks()
    made = World()
    await made.strings.open()
    try:
        yield made
    finally:
        await asyncio.gather(*(provider.close() for provider in made.providers))
        await made.strings.close()
        await made.journal.close()
        assert asyncio.all_tasks() - before - {asyncio.current_task()} == set(), (
            f"tasks are left: {asyncio.all_tasks() - before}"
        )


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def descriptors() -> int:
    """How many files and sockets this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def quoted(command: Sequence[str]) -> str:
    """A command as a shell takes it."""
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in command)
