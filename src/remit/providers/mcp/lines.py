"""Lines to a server: one for all calls, or one for each person, where each logs in with an account of their own.

A line is a connection with a session, a login, and answers of its own: nothing of one person's line reaches another's.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from remit.errors import ProviderError
from remit.jsonrpc.protocol import SessionGoneError
from remit.providers.mcp.session import lost, translated

if TYPE_CHECKING:
    from remit.http.access import Assertion
    from remit.process.child import Launch
    from remit.providers.mcp.answers import ServerAnswers
    from remit.providers.mcp.connection import AgreedSession
    from remit.providers.mcp.oauth import ServerLogin
    from remit.providers.mcp.supervisor import ConnectionSupervisor
    from remit.settings.mcp import McpServer

    Question = Callable[["ServerLine", AgreedSession], Coroutine[Any, Any, dict[str, Any]]]

RESTART_S: Final = 30.0
"""Seconds for what is asked of a server before it is restarted."""
MOST: Final = 100
"""Lines of people that are kept while no one calls on them."""


class ServerLine:
    """One way to the server."""

    def __init__(
        self, server: str, answers: ServerAnswers, supervisor: ConnectionSupervisor, login: ServerLogin | None
    ) -> None:
        self.answers = answers
        self.supervisor = supervisor
        self.login = login
        self.calls = 0
        """Calls under way."""
        self._server = server
        self._under_way, self._idle = 0, asyncio.Event()

    async def restart(self, reason: str) -> None:
        """End the connection once what is asked on it is answered, and begin a new one."""
        await self.supervisor.restart(self._answered, reason)

    def become(self, server: McpServer, login: ServerLogin | None, launch: Launch | None) -> None:
        """Connect by other settings from the next connection on."""
        self.login = login
        self.answers.shared = server.client_capabilities
        self.supervisor.become(server, login, launch)

    async def end(self) -> None:
        """End the connection once what is asked on it is answered."""
        await self._answered()
        await self.supervisor.close()

    async def ask(self, question: Question) -> dict[str, Any]:
        """An answer; or a failure in our words, which may say that the connection is of no use any more.

        A server that does not know our session any more has done nothing: it is asked once more in a new one. Raises
        ProviderError.
        """
        for last in (False, True):
            connection = await self.supervisor.connection()
            self._under_way += 1
            try:
                return await question(self, connection)
            except Exception as error:
                if (reason := lost(error)) is not None:
                    connection.lose(reason)
                if last or not isinstance(error, SessionGoneError):
                    raise translated(error, self._server) from error
            finally:
                self._under_way -= 1
                if not self._under_way:
                    self._idle.set()
        msg = "the second attempt is the last"
        raise AssertionError(msg)

    async def _answered(self) -> None:
        """Wait until nothing is asked any more, for `RESTART_S` at most: what takes longer is lost."""
        with suppress(TimeoutError):
            async with asyncio.timeout(RESTART_S):
                while self._under_way:
                    self._idle.clear()
                    await self._idle.wait()


class PersonalLines:
    """The lines of people."""

    def __init__(self, open_line: Callable[[str], ServerLine]) -> None:
        self._open_line = open_line
        self._lines: OrderedDict[str, ServerLine] = OrderedDict()

    async def ask(self, principal: str, question: Question, proof: Assertion | None) -> dict[str, Any]:
        """Ask on the line of a person, who brings `proof`, as `Line.ask`.

        A line that cannot be connected is opened again the next time.
        """
        line = self._lines.pop(principal, None) or self._open_line(principal)
        self._lines[principal] = line  # last used, last in the order
        line.calls += 1
        if line.login is not None and proof is not None:
            line.login.assertion = proof
        try:
            return await line.ask(question)
        except ProviderError:
            if line.supervisor.refusal() is not None or not line.supervisor.reached:
                await self._drop(principal, line)
            raise
        finally:
            line.calls -= 1
            await self._make_room()

    async def restart(self, reason: str) -> None:
        """Restart all."""
        await asyncio.gather(*(line.restart(reason) for line in self._lines.values()))

    async def end(self) -> None:
        """End all connections once what is asked on them is answered."""
        lines = list(self._lines.values())
        await asyncio.gather(*(line.end() for line in lines))

    async def close(self) -> None:
        """End all connections."""
        lines = list(self._lines.values())
        await asyncio.gather(*(line.supervisor.close() for line in lines))

    async def _make_room(self) -> None:
        idle = [name for name, line in self._lines.items() if not line.calls]
        for name in idle[: max(len(self._lines) - MOST, 0)]:
            await self._drop(name, self._lines[name])

    async def _drop(self, principal: str, line: ServerLine) -> None:
        if self._lines.get(principal) is line:
            del self._lines[principal]
        await line.supervisor.close()
