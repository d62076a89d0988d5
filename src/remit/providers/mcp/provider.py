"""The tools of one MCP server, behind the port that every provider fills."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

from msgspec.structs import replace

from remit.canonical import digest
from remit.codes import Code
from remit.errors import ChainBrokenError, ProviderError
from remit.providers.mcp.answers import ServerAnswers
from remit.providers.mcp.connection import LIST_S, ListFailedError
from remit.providers.mcp.lines import PersonalLines, ServerLine
from remit.providers.mcp.offers import full_names, meta_of, version_of
from remit.providers.mcp.results import passed_on, result_of
from remit.providers.mcp.server_log import ServerLog
from remit.providers.mcp.session import TOOLS_CHANGED, translated
from remit.providers.mcp.supervisor import ConnectionSupervisor
from remit.providers.mcp.tool_call import OpenToolCall
from remit.redact import line
from remit.settings.places import server_log
from remit.tasks import Tasks
from remit.tools.peer import ROOTS
from remit.tools.provider import CallContext, ToolResult
from remit.tools.remote import Outage, RemoteStatus, task_support

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.process.child import Launch
    from remit.providers.mcp.connection import AgreedSession
    from remit.providers.mcp.lines import Question
    from remit.providers.mcp.oauth import ServerLogin
    from remit.providers.mcp.session import Heard
    from remit.randomness import RandomSource
    from remit.settings.mcp import McpServer
    from remit.settings.sections.mcp import McpSettings
    from remit.tools.meta import ToolMeta
    from remit.tools.peer import OnlyPeer, Peer
    from remit.tools.pins import Pins

RELIST_S: Final = 5.0
"""Seconds before a server that refused to list its tools is asked again."""
_TOLD: Final = 20
"""Tools of a first use that are named."""
_log: Final = logging.getLogger("remit.mcp")


class McpProvider:
    """Serves what one server offers.

    Nothing is started before the tools are first listed. `login` is for servers that want OAuth; `launch` starts the
    server in the sandbox.
    """

    def __init__(
        self,
        server: McpServer,
        settings: McpSettings,
        pins: Pins,
        *,
        clock: Clock,
        chance: RandomSource,
        login: ServerLogin | None = None,
        launch: Launch | None = None,
    ) -> None:
        self._server = replace(server, grace_ms=server.grace_ms or settings.grace_ms)
        self._timeout_ms = settings.timeout_ms
        self._pins = pins
        self._clock = clock
        self._watchers: list[Callable[[], None]] = []
        self._own_names: dict[str, str] = {}
        self._offered: Mapping[str, str] = {}
        self._withheld: dict[str, str] = {}
        self._unlisted = True
        self._failed: ProviderError | None = None
        self._awaiting = 0
        self._follower: asyncio.Task[None] | None = None
        self._stale = False
        self._unlisted_at = 0.0
        self._listeners: list[Callable[[str, Mapping[str, Any]], None]] = []
        self._telling = Tasks()
        self._settings = settings
        self._chance = chance
        self._login = login
        self._launch = launch
        self._line = self._open_line(login, self._heard, self._arrived, self._tell)
        self._supervisor = self._line.supervisor
        self._people = PersonalLines(self._personal_line)

    def _open_line(
        self,
        login: ServerLogin | None,
        listener: Heard,
        arrived: Callable[[AgreedSession], None],
        retriable: Callable[[], None],
    ) -> ServerLine:
        settings, name = self._settings, self._server.name
        capabilities = self._server.client_capabilities
        answers = ServerAnswers(name, settings.elicitation, settings.sampling, capabilities)
        supervisor = ConnectionSupervisor(
            self._server,
            answers,
            clock=self._clock,
            chance=self._chance,
            max_message_bytes=settings.max_message_bytes,
            listener=listener,
            login=login,
            log=ServerLog(server_log(os.environ, name), settings.log_bytes, self._clock),
            launch=self._launch,
            arrived=arrived,
            retriable=retriable,
        )
        return ServerLine(name, answers, supervisor, login)

    def _personal_line(self, person: str) -> ServerLine:
        """A line on which a person calls; what the server offers is what it lists on the line of all."""
        login = self._login.of(person, exchanges=self._exchanges) if self._login is not None else None
        return self._open_line(login, lambda _method, _params: None, lambda _connection: None, lambda: None)

    @property
    def provider_id(self) -> str:
        return f"mcp_{self._server.name}"

    @property
    def _exchanges(self) -> bool:
        """Return whether tokens of callers are exchanged for some of the server."""
        return "identity_provider" in (self._server.oauth or {})

    def watch(self, changed: Callable[[], None]) -> None:
        self._watchers.append(changed)

    def outdated(self) -> bool:
        connection = self._supervisor.current
        unlisted = connection is not None and connection.unlisted is not None
        return unlisted and self._clock.monotonic() - self._unlisted_at >= RELIST_S

    async def list_tools(self) -> Sequence[ToolMeta]:
        self._unlisted = True
        connection = await self._listed(to_the_catalog=True)
        listing, (server, version) = connection.listing, connection.session.server
        seq = await self._pins.seq(self._server.name)
        withheld = {**await self._pins.withheld(self._server.name, listing.tools), **listing.refused}
        reviewed = await self._is_reviewed()
        if withheld or not reviewed:
            self._follow(seq or await self._pins.seq(self._server.name))
        names, shared = full_names(self._server.name, listing.tools)
        for own, name in shared.items():
            withheld[own] = f"another tool of the server is called {name} here as well"
        self._own_names = {full: own for own, full in names.items()}
        self._offered, self._withheld, self._unlisted = listing.hashes, withheld, False
        timeout_ms = self._timeout_ms
        metas = [
            meta_of(
                self._server,
                names[own],
                raw,
                timeout_ms=timeout_ms,
                withheld=withheld.get(own, ""),
                reviewed=reviewed,
                version=version_of(server, version, listing.hashes[own]),
            )
            for own, raw in listing.tools.items()
        ]
        if not seq and await self._pins.seq(self._server.name):
            self._tell_first(metas)
        return metas

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        if not self._offered and self._unlisted:
            await self.list_tools()
        own = self._own_names.get(name)
        if own is None:
            raise ProviderError(f"the MCP server {self._server.name} has no tool {name}", cause=Code.ToolNotFound)
        attached = ctx.peer.attached if ctx.peer is not None else {}
        meta = {**attached, "traceparent": f"00-{ctx.trace_id}-{ctx.span_id}-01"}
        params = {"name": own, "arguments": args, "_meta": meta}

        def call(line: ServerLine, connection: AgreedSession) -> Coroutine[Any, Any, dict[str, Any]]:
            self._check(name, own, line, connection)
            tool_call = OpenToolCall(connection.session, line.answers, ctx, self._clock)
            support = task_support(connection.listing.tools[own])
            return tool_call.result(params, support, connection.listing.headers(own, args))

        raw = await self._asked(ctx.principal, ctx.peer, call)
        if ctx.peer is not None:
            ctx.peer.given(ctx.invocation_id, passed_on(raw))
        return result_of(raw, source=name, now=self._clock.now())

    async def close(self) -> None:
        if self._follower is not None:
            self._follower.cancel()
            await asyncio.wait([self._follower])
        self._telling.cancel()
        await asyncio.gather(self._supervisor.close(), self._people.close())

    # --- what `remit mcp` asks

    @property
    def dependency(self) -> str:
        return f"mcp.{self._server.name}"

    @property
    def reached(self) -> bool:
        return self._supervisor.reached

    def outage(self) -> Outage | None:
        error = self._supervisor.refusal() or self._failed
        return None if error is None else Outage(error.cause or Code.ConnectionError, str(error))

    async def definitions(self) -> Mapping[str, dict[str, Any]]:
        self._stale, failed = True, self._failed is not None  # a server need not tell that its tools changed
        listing = (await self._listed()).listing
        if failed or (not self._unlisted and listing.hashes != self._offered):
            self._tell()
        return listing.tools

    async def status(self) -> RemoteStatus:
        connection = await self._supervisor.connection()
        session = connection.session
        name, version = session.server
        instructions = session.introduction.get("instructions")
        return RemoteStatus(
            name=name,
            version=version,
            protocol=session.protocol_version,
            era=connection.era,
            instructions=instructions if isinstance(instructions, str) else "",
            tools=len(connection.listing.tools),
            capabilities=session.capabilities,
            introduction=dict(session.introduction),
        )

    async def restart(self, by: str) -> None:
        reason = f"{by} restarted it"
        await asyncio.gather(self._line.restart(reason), self._people.restart(reason))

    async def become(self, other: Self) -> None:
        self._server, self._login, self._launch = other._server, other._login, other._launch
        self._line.become(self._server, self._login, self._launch)
        people, self._people = self._people, PersonalLines(self._personal_line)
        self._tell()  # its levels may differ where its tools do not
        await asyncio.gather(self._line.restart("its settings were changed"), people.end())

    async def retire(self) -> None:
        await asyncio.gather(self._line.end(), self._people.end())
        await self.close()

    async def relay(self, method: str, params: Mapping[str, Any], peer: Peer | None, principal: str) -> dict[str, Any]:
        def settle(line: ServerLine, connection: AgreedSession) -> Coroutine[Any, Any, dict[str, Any]]:
            return connection.session.settle(method, params, line.answers, peer)

        return await self._asked(principal, peer, settle)

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        if (connection := self._supervisor.current) is not None:
            await connection.session.tell(method, params)

    def serve_only(self, peer: OnlyPeer) -> None:
        self._line.answers.only = peer
        peer.subscribe(self._roots_changed)

    def subscribe(self, listener: Callable[[str, Mapping[str, Any]], None]) -> None:
        self._listeners.append(listener)

    # --- common

    async def _is_reviewed(self) -> bool:
        try:
            return await self._pins.reviewed(self._server.name)
        except ChainBrokenError:
            return False  # its tools are withheld

    def _tell_first(self, tools: Sequence[ToolMeta]) -> None:
        """Show the operator what the first use has pinned."""
        name = self._server.name
        names = [f"{line(meta.name)} ({meta.capability_level.name})" for meta in tools[:_TOLD]]
        names += [f"{len(tools) - _TOLD} more"] if len(tools) > _TOLD else []
        patterns = any(set(tool) & set("*?[") for tool in self._server.tools)
        levels = f" Levels by pattern count after: remit mcp pin {name}" if patterns else ""
        _log.warning(
            "the first contact with the MCP server %s pinned its tools as they are: %s. "
            "Look at them: remit mcp show %s.%s",
            *(name, ", ".join(names) or "none", name, levels),
        )

    def _check(self, name: str, own: str, line: ServerLine, connection: AgreedSession) -> None:
        """Raise ProviderError where a tool is withheld, or not what it was when it was looked up."""
        if own in self._withheld:
            raise ProviderError(f"{name} is withheld: {self._withheld[own]}", cause=Code.ToolNotFound)
        if connection.unlisted is not None and own not in connection.listing.tools:
            raise ProviderError(f"{name} cannot be looked up: {connection.unlisted}", cause=Code.ToolNotFound)
        if connection.listing.hashes.get(own) == self._offered.get(own):
            return
        if line is not self._line:
            reason = f"{name} is not offered to this person, or is another tool for them than the one that is listed"
            raise ProviderError(reason, cause=Code.ToolNotFound)
        self._tell()
        raise ProviderError(f"{name} changed since it was looked up; look it up again", cause=Code.ToolNotFound)

    async def _asked(self, principal: str, peer: Peer | None, question: Question) -> dict[str, Any]:
        """An answer, on the line of the principal where each person logs in. Raises ProviderError."""
        if self._server.login != "user" or (self._login is not None and principal == self._login.principal):
            return await self._line.ask(question)
        proof = peer.assertion if peer is not None else None
        if not self._exchanges:
            return await self._people.ask(principal, question, None)
        issuer = (self._server.oauth or {})["identity_provider"]
        if proof is None or proof.issuer != issuer:
            reason = f"the MCP server {self._server.name}: {line(principal)} has to call with a token of {issuer}"
            raise ProviderError(reason, cause=Code.AuthError, code=Code.TOOL_UNAVAILABLE)
        person = digest({"principal": principal, "issuer": proof.issuer, "subject": proof.subject})
        return await self._people.ask(person, question, proof)

    async def _listed(self, *, to_the_catalog: bool = False) -> AgreedSession:
        """The connection, its tools listed; to the catalog within `LIST_S`. Raises ProviderError."""
        try:
            async with asyncio.timeout(LIST_S if to_the_catalog else None):
                connection = await self._connected(to_the_catalog=to_the_catalog)
        except ListFailedError as error:
            self._failed = error  # the supervisor has logged it
            raise
        except TimeoutError:
            reason = f"the MCP server {self._server.name}: no list of its tools within {LIST_S:g} s"
            self._failed = ProviderError(reason, cause=Code.Timeout)
            _log.error("mcp.list_tools.failed server=%s: %s", self._server.name, reason)
            raise self._failed from None
        except ProviderError as error:
            self._failed = error
            if error.cause is not Code.SpawnFailed:  # else the supervisor has logged it
                _log.error("mcp.list_tools.failed server=%s: %s", self._server.name, error)
            raise
        self._failed = None
        return connection

    async def _connected(self, *, to_the_catalog: bool) -> AgreedSession:
        self._awaiting += to_the_catalog
        try:
            connection = await self._supervisor.connection()
        finally:
            self._awaiting -= to_the_catalog
        if self._stale:
            await self._relist(connection)
        if connection.unlisted is not None:
            self._stale, self._unlisted_at = True, self._clock.monotonic()
            raise translated(connection.unlisted, self._server.name)
        return connection

    async def _relist(self, connection: AgreedSession) -> None:
        """Ask again, and connect again if there is no answer. Raises ProviderError."""
        self._stale = False
        try:
            await connection.relist()
        except BaseException as error:
            self._stale = True
            connection.lose(f"it did not list its tools: {error}".removesuffix(": "))
            if not isinstance(error, Exception):
                raise
            raise translated(error, self._server.name) from error

    def _heard(self, method: str, params: Mapping[str, Any]) -> None:
        """The server tells something; changed tools are listed again."""
        if method == TOOLS_CHANGED:
            self._stale = True
            self._tell()
        for listener in self._listeners:
            listener(method, params)

    def _roots_changed(self) -> None:
        """The roots of the only peer changed; a server that is asleep asks when it is up."""
        connection = self._supervisor.current
        if connection is not None and connection.era == "legacy" and ROOTS in connection.session.offers:
            self._telling.begin(connection.session.tell("notifications/roots/list_changed"))

    def _arrived(self, connection: AgreedSession) -> None:
        """A new connection may offer something else than the last one did; a listing at this moment finds out."""
        self._stale = False
        self._failed = None
        if not self._awaiting and (self._unlisted or connection.listing.hashes != self._offered):
            self._tell()

    def _follow(self, seq: int) -> None:
        """List again once a person has decided, in whatever process, on what is withheld."""

        async def follow() -> None:
            await self._pins.changed(self._server.name, seq)
            self._follower = None
            self._tell()

        if self._follower is None or self._follower.done():
            self._follower = asyncio.create_task(follow(), name=f"pins of {self._server.name}")

    def _tell(self) -> None:
        for changed in self._watchers:
            changed()
