"""One live connection to a server, from its handshake to its loss.

It is entered and left by one task, its owner's; every other task only calls.

Which era a server speaks is found out once. On stdio the handshake of before 2026-07-28 goes first: every server there
knows it or refuses it at once, whereas an old one may exit on a request it does not know, or stay silent. Over HTTP the
newer `server/discover` goes first: there it is answered or rejected at once, and no session has to be kept.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from remit.codes import Code
from remit.errors import ProviderError
from remit.jsonrpc.dispatcher import Dispatcher
from remit.jsonrpc.protocol import METHOD_NOT_FOUND, MCPError, UnansweredError
from remit.process.environment import environment
from remit.providers.mcp.session import TOOLS_CHANGED, Heard, McpSession
from remit.providers.mcp.stdio import Stdio
from remit.settings.places import server_folders
from remit.tools.pins import hash_of

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.process.child import Launch
    from remit.providers.mcp.answers import ServerAnswers
    from remit.providers.mcp.oauth import ServerLogin
    from remit.providers.mcp.server_log import ServerLog
    from remit.settings.mcp import McpServer

MAX_TOOLS: Final = 2_000
"""Tools of one server; more are no catalog but an attack on it."""
MAX_PAGES: Final = 200
_MIRROR: Final = "x-mcp-header"
"""Marks an argument that goes in a header as well."""


class Listing(msgspec.Struct, frozen=True):
    """One answer to `tools/list`, all its pages."""

    tools: Mapping[str, dict[str, Any]]
    """The raw definitions by the server's own names, in its order."""
    refused: Mapping[str, str]
    """Names that cannot be told apart, with the reason."""
    hashes: Mapping[str, str]
    """Hashes of the definitions, by name."""
    mirrored: Mapping[str, Mapping[tuple[str, ...], str]]
    """Arguments that a server on HTTP wants in a header as well (2026-07-28), by tool and place."""

    def headers(self, name: str, args: Mapping[str, Any]) -> dict[str, str]:
        """Return what HTTP says of these arguments beside a call of the tool."""
        places = self.mirrored.get(name)
        if not places:
            return {}
        from mcp.shared.inbound import mcp_param_headers  # noqa: PLC0415 - half a second, for few servers

        return mcp_param_headers(places, args)


NOTHING: Final = Listing({}, {}, {}, {})


async def listing_of(session: McpSession) -> Listing:
    """Ask for all pages. Raises MCPError, or ProviderError for an answer that cannot be meant."""
    entries: dict[str, dict[str, Any]] = {}
    refused: dict[str, str] = {}
    mirrored: dict[str, Mapping[tuple[str, ...], str]] = {}
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await session.ask("tools/list", {"cursor": cursor} if cursor else {})
        for place, entry in enumerate(_entries(page), start=len(entries) + 1):
            tool, name = _named(entry, place)
            if tool is not entry:
                refused[name] = "the server lists it without a name"
            elif entries.get(name, tool) != tool:
                refused[name] = "the server lists it twice"
            elif _MIRROR in str(tool.get("inputSchema")):
                mirrored[name], reason = _mirrored(tool["inputSchema"])
                if reason:
                    refused[name] = f"the server's definition is not valid: {reason}"
            entries[name] = tool
        if len(entries) > MAX_TOOLS:
            raise ProviderError(f"it offers more than {MAX_TOOLS} tools", cause=Code.BadGateway)
        following = page.get("nextCursor")
        if not isinstance(following, str) or not following or following == cursor:
            hashes = {name: hash_of(raw) for name, raw in entries.items()}
            places = {name: each for name, each in mirrored.items() if each and name not in refused}
            return Listing(entries, refused, hashes, places)
        cursor = following
    raise ProviderError(f"its list of tools has more than {MAX_PAGES} pages", cause=Code.BadGateway)


def _mirrored(schema: Any) -> tuple[Mapping[tuple[str, ...], str], str]:
    """The arguments that go in headers as well, by the SDK's rules; or what is wrong with them."""
    from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map  # noqa: PLC0415 - as above

    problem = find_invalid_x_mcp_header(schema)
    return ({}, problem) if problem else (x_mcp_header_map(schema), "")


def _entries(page: dict[str, Any]) -> list[Any]:
    tools = page.get("tools")
    if not isinstance(tools, list):
        raise ProviderError("its answer to tools/list has no list of tools", cause=Code.BadGateway)
    return tools


def _named(entry: Any, place: int) -> tuple[dict[str, Any], str]:
    """The definition and its name; of an entry without one its place, under which it is shown and withheld."""
    if isinstance(entry, dict) and isinstance(entry.get("name"), str):
        return entry, entry["name"]
    name = f"entry-{place}"
    return {"name": name}, name


Era = Literal["legacy", "modern"]
PROBE_S: Final = 5.0
"""Seconds for a server on HTTP to answer the era's first request, where it is not known that it speaks it."""

LIST_S: Final = 25.0
"""Seconds for a server to list its tools, and for a listing to wait for a server that is still connecting: less than
the catalog gives a provider, so that the reason is known when the catalog gives up."""
RELISTEN_S: Final = 5.0
"""Seconds before a server that stopped telling of changes is asked to go on."""

_log: Final = logging.getLogger("remit.mcp")


class ListFailedError(ProviderError):
    """The server was reached, and did not list its tools."""


class AgreedSession:
    """A session that was agreed on."""

    def __init__(self, session: McpSession, era: Era, process: Stdio | None) -> None:
        self.session = session
        self.era: Era = era
        self.process = process
        self.listing = NOTHING
        self.unlisted: MCPError | ProviderError | None = None
        """The server's answer to `tools/list` where that is an error: it may list them later."""
        self._why_lost = ""
        self._lost = asyncio.Event()

    @property
    def why_lost(self) -> str:
        """Return why it is of no use any more; empty while it is."""
        return self._why_lost or (self.process.why_lost if self.process is not None else "")

    def lose(self, reason: str) -> None:
        """Say that it is of no use any more."""
        if not self._why_lost:
            self._why_lost = reason
            self._lost.set()

    async def lost(self) -> str:
        """Wait for its loss; why."""
        await self._lost.wait()
        return self._why_lost

    async def relist(self) -> None:
        """Ask again what the server offers. Raises MCPError or ProviderError where there is no answer."""
        self.unlisted = None
        try:
            self.listing = await listing_of(self.session)
        except (MCPError, ProviderError) as error:
            if _is_over(error) or (isinstance(error, UnansweredError) and error.cause is Code.Timeout):
                raise
            named = not isinstance(error, MCPError) or error.code != METHOD_NOT_FOUND
            if named or "tools" in self.session.capabilities:
                self.unlisted = error
            else:
                self.listing = NOTHING  # it offers prompts or resources only, and says so


@asynccontextmanager
async def connected(
    server: McpServer,
    era: Era | None,
    answers: ServerAnswers,
    listener: Heard,
    max_message_bytes: int,
    clock: Clock,
    login: ServerLogin | None,
    log: ServerLog,
    launch: Launch | None = None,
) -> AsyncIterator[AgreedSession]:
    """Connect, agree on an era, list the tools. Raises MCPError, OSError, ProviderError and what HTTP raises.

    `listener` is told of changed lists; `login` authorizes requests over HTTP; `launch` starts a server in the sandbox.
    """
    async with AsyncExitStack() as stack:
        process = None
        if server.command:
            process = await _started(server, max_message_bytes, log, launch)
            stack.push_async_callback(process.close)
            dispatcher = process.dispatcher
        else:
            from remit.providers.mcp.http import Http  # noqa: PLC0415 - a server on stdio does not wait for HTTP

            http = await stack.enter_async_context(
                Http.open(
                    server.url,
                    server.headers,
                    max_message_bytes=max_message_bytes,
                    clock=clock,
                    authorization=await login.auth(server) if login else None,
                )
            )
            dispatcher = http.dispatcher
        declared = await answers.declared()  # meanwhile the process has begun
        session = await stack.enter_async_context(McpSession(dispatcher, answers, listener, declared).open())
        try:
            connection = AgreedSession(session, await _agree(session, era, stdio=process is not None), process)
        except (MCPError, ProviderError, RuntimeError, msgspec.ValidationError) as error:
            reason = await process.account(str(error)) if process is not None else str(error)
            raise ProviderError(reason, cause=Code.SpawnFailed) from error
        if process is not None:
            process.met()
        try:
            async with asyncio.timeout(LIST_S):
                await connection.relist()
        except TimeoutError:
            raise ListFailedError(f"no answer to tools/list within {LIST_S:g} s", cause=Code.Timeout) from None
        except (MCPError, ProviderError) as error:
            reason = await process.account(str(error)) if process is not None else str(error)
            raise ListFailedError(reason, cause=Code.SpawnFailed) from error
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_listen(session, listener, clock))] if connection.era == "modern" else []
            tasks.append(group.create_task(_watch(dispatcher, connection)))
            try:
                yield connection
            finally:
                connection.lose("the connection was closed")
                for task in tasks:
                    task.cancel()


def _make_own_folder(cwd: str) -> None:
    if Path(cwd).parent == server_folders(os.environ):
        Path(cwd).mkdir(mode=0o700, parents=True, exist_ok=True)


async def _started(server: McpServer, max_message_bytes: int, log: ServerLog, launch: Launch | None) -> Stdio:
    _make_own_folder(server.cwd)
    return await Stdio.run(
        server.command,
        cwd=server.cwd,
        env=environment(os.environ, server.env) if launch is None else server.env,
        max_message_bytes=max_message_bytes,
        grace_s=server.grace_ms / 1_000,
        log=log,
        launch=launch,
    )


async def _agree(session: McpSession, era: Era | None, *, stdio: bool) -> Era:
    """Shake hands in the era that is known, or in the likelier one and then the other."""
    if era is not None:
        return await _shake(session, era)
    first: Era = "legacy" if stdio else "modern"
    try:
        async with asyncio.timeout(None if stdio else PROBE_S):  # a program may be on its way for minutes: npx, uvx
            return await _shake(session, first)
    except (MCPError, msgspec.ValidationError, RuntimeError, TimeoutError) as error:
        if _is_over(error):
            raise
        _log.debug("not %s: %s", first, error)
        refusal = error
    try:
        return await _shake(session, "modern" if first == "legacy" else "legacy")
    except (MCPError, msgspec.ValidationError, RuntimeError) as error:
        if isinstance(refusal, TimeoutError) and not _is_over(error):
            return await _shake(session, first)  # it speaks it after all, and was only slow
        legacy, modern = (refusal, error) if first == "legacy" else (error, refusal)
        raise (modern if isinstance(legacy, MCPError) and legacy.code == METHOD_NOT_FOUND else legacy) from error


def _is_over(error: Exception) -> bool:
    """Return whether nothing is reached there, in whatever era."""
    return isinstance(error, UnansweredError) and error.cause not in {Code.BadGateway, Code.Timeout}


async def _shake(session: McpSession, era: Era) -> Era:
    if era == "legacy":
        await session.initialize()
    else:
        await session.discover()
    return era


async def _listen(session: McpSession, listener: Heard, clock: Clock) -> None:
    """Hear of changes for as long as the server tells; after a gap in that, the tools count as changed."""
    gap = False
    while True:
        try:
            await session.listen(partial(listener, TOOLS_CHANGED, {}) if gap else None)
        except MCPError as error:
            if not isinstance(error, UnansweredError):
                return  # it tells nothing; it is asked again at the next connection
        gap = True
        await clock.sleep(RELISTEN_S)


async def _watch(dispatcher: Dispatcher, connection: AgreedSession) -> None:
    connection.lose(await dispatcher.closed())
