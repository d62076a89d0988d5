"""The operators' noun for MCP servers: look at them, pin their tools, see what changed, approve it.

Restarts of MCP servers that people ask for: every process of the journal that uses the server hears of them.

A request is an event in one stream for all servers. A process that stays up looks there whenever heads change, once a
second at most, and begins with what is asked after it has: a server that starts later is new anyway.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec

from remit.canonical import digest
from remit.codes import Code
from remit.errors import AppendConflictError, ChainBrokenError, NotFoundError, ProviderError, StateError
from remit.http.access import Access
from remit.journal.kinds import McpRestartRequested, decode
from remit.journal.leases import Owner
from remit.operation import Body, By, WireName, operation
from remit.tasks import Tasks
from remit.tools.drift import DriftClass, compare_input, compare_output, worst
from remit.tools.pins import Changes, How, Pin, Pins, hash_of
from remit.tools.remote import PREFIX, Probed, Remote, RemoteStatus

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.settings.mcp import McpServer
    from remit.tools.catalog import Catalog
    from remit.tools.tool import Tool


_KEYS: Final = ("title", "description", "inputSchema", "outputSchema", "annotations")
"""Parts of a definition in the order in which they are shown; others come after."""
_ONE: Final = "/v1/mcp/servers/{server}"
_DOWN: Final = (Code.UNKNOWN_TOOL, Code.TOOL_UNAVAILABLE)
_ASKED_S: Final = 120.0
"""Seconds that connecting a server may take: it may have to be installed first."""
_COMPARED: Final = 2_000
"""Lines up to which two sides are compared; above, one stands whole after the other."""


class ToolDiff(msgspec.Struct, frozen=True, kw_only=True):
    """How one tool differs from its pin."""

    name: str
    """The server's own."""
    how: str
    """`added`, `changed` or `removed`."""
    drift: str
    """The meaning of a change to callers: `annotation_only`, `compatible` or `breaking`; empty for any other."""
    lines: tuple[str, ...]
    """The definitions as JSON, compared line by line: `+`, `-` or a space in front."""
    fields: tuple[FieldDiff, ...] = ()
    """The same, part by part: only those that differ."""


class FieldDiff(msgspec.Struct, frozen=True, kw_only=True):
    """How one part of a definition changed."""

    field: str
    """Its key: `description`, `inputSchema`, `outputSchema`, `annotations`, …"""
    lines: tuple[str, ...]
    """Both sides, compared line by line: `+`, `-` or a space in front."""


class ServerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A server in a list."""

    name: str
    state: Literal["up", "connecting", "failed", "off"]
    why: str
    """The reason why it is not up."""
    transport: str
    """`stdio` or `http`; empty: it is not known."""
    where: str
    isolation: str
    """`none`, `sandbox` or `elsewhere`; empty: it is not known."""
    tools: int
    withheld: int
    pinned_at: int
    """Microseconds since the Unix epoch; 0: never."""
    pinned_by: str


class ServerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A server, as it is known without asking it."""

    name: str
    outage: str
    """The reason why its tools cannot be used now; empty if it is up, or was not needed yet."""
    tools_pinned: int | None
    """Tools of its pin; None if it was never pinned."""
    transport: str = ""
    """`stdio` or `http`; empty: it is not known."""
    where: str = ""
    """Its command or address."""
    isolation: str = ""
    """`none`, `sandbox` or `elsewhere`; empty: it is not known."""


class ServerDiff(msgspec.Struct, frozen=True, kw_only=True):
    """How a server's tools differ from their pin."""

    server: str
    pin: Pin
    changes: Changes
    digest: str
    """Binds what is shown: an approval has to bring it back."""
    tools: tuple[ToolDiff, ...]


async def _check_known(servers: McpServers, _: Access, arguments: Mapping[str, Any]) -> None:
    """Raise NotFoundError for a server that is not used here."""
    servers.remote(arguments["server"])


class McpServers:
    """The servers of this process."""

    def __init__(self, catalog: Catalog, pins: Pins, restarts: Restarts, configured: Sequence[McpServer] = ()) -> None:
        self._catalog, self.restarts = catalog, restarts
        self._pins = pins
        self.configure(configured)

    def configure(self, servers: Sequence[McpServer]) -> None:
        """Describe the servers behind the catalog by these settings from now on."""
        self._configured = {server.name: server for server in servers}

    # --- queries

    async def rows(self, patience_s: float | None = None) -> list[ServerRow]:
        """Every server, by name; those that are still connecting are waited for up to `patience_s` seconds."""
        tools = await self._catalog.tools(patience_s)
        outages = self.known()
        return [
            await self._row(
                name, outages.get(name, ""), [tool for tool in tools if tool.meta.provider_id == PREFIX + name]
            )
            for name in sorted({*self._configured, *outages})
        ]

    async def _row(self, name: str, outage: str, tools: list[Tool]) -> ServerRow:
        known, pin = self._configured.get(name), None
        state, reason = self._state(PREFIX + name, outage)
        try:
            pin = await self._pins.load(name)
        except ChainBrokenError as error:  # its tools are withheld; the other servers are shown as they are
            state, reason = "failed", f"{error.code.name}: {error.message}"
        return ServerRow(
            name=name,
            state=state,
            why=reason,
            transport=known.transport if known else "",
            where=known.where if known else "",
            isolation=known.isolation if known else "",
            tools=len(tools),
            withheld=sum(tool.quarantined is not None for tool in tools),
            pinned_at=pin.at if pin else 0,
            pinned_by=pin.by if pin else "",
        )

    def _state(self, provider_id: str, outage: str) -> tuple[Literal["up", "connecting", "failed", "off"], str]:
        if self._catalog.provider(provider_id) is None:
            return "off", "MCP servers are not used: tools.no_mcp is set."
        if failure := self._catalog.failures.get(provider_id, "") or outage:
            return "failed", failure
        return ("up", "") if self._catalog.heard(provider_id) else ("connecting", "")

    def known(self) -> dict[str, str]:
        """Every server by name, and why its tools cannot be used now, as far as is known without asking it."""
        servers: dict[str, str] = {}
        for provider_id in sorted(self._catalog.provider_ids):
            provider: object = self._catalog.provider(provider_id)
            if isinstance(provider, Remote):
                outage = provider.outage() if isinstance(provider, Probed) else None
                servers[provider_id.removeprefix(PREFIX)] = outage.reason if outage else ""
        return servers

    @operation("servers.page", "GET /v1/mcp/servers", "read", "List MCP servers.")
    async def entries(self) -> list[ServerEntry]:
        """List the servers, with what is known of them. None is connected."""
        return [await self._entry(name, outage) for name, outage in self.known().items()]

    async def _entry(self, name: str, outage: str) -> ServerEntry:
        known, pin = self._configured.get(name), await self._pins.load(name)
        return ServerEntry(
            name=name,
            outage=outage,
            tools_pinned=len(pin.tools) if pin else None,
            transport=known.transport if known else "",
            where=known.where if known else "",
            isolation=known.isolation if known else "",
        )

    @operation(
        "servers.status",
        f"POST {_ONE}/connect",
        "admin",
        "Connect to an MCP server.",
        codes=_DOWN,
        held_s=_ASKED_S,
        repeatable=True,
    )
    async def status(self, server: str) -> RemoteStatus:
        """Connect to a server and say who answers, as it says itself.

        Raises NotFoundError or StateError.
        """
        remote = self.remote(server)
        try:
            return await remote.status()
        except ProviderError as error:
            raise _down(error) from error

    @operation(
        "servers.restart",
        f"POST {_ONE}/restart",
        "admin",
        "Start an MCP server again.",
        codes=_DOWN,
        held_s=_ASKED_S,
    )
    async def restart(self, server: str, *, by: By = "") -> RemoteStatus:
        """End the connection to a server once its calls under way have ended, begin a new one, and say who answers.

        Calls made meanwhile wait. Other processes of the journal do the same. Raises NotFoundError or StateError.
        """
        await self.remote(server).restart(by := by or "the operator")
        await self.restarts.ask(server, by, here=True)
        return await self.status(server)

    async def definitions(self, server: str) -> Mapping[str, dict[str, Any]]:
        """The tools as the server words them now. Raises NotFoundError or StateError."""
        remote = self.remote(server)
        try:
            return await remote.definitions()
        except ProviderError as error:
            raise _down(error) from error

    @operation(
        "servers.pinned",
        f"GET {_ONE}/pin",
        "read",
        "Show what is pinned of an MCP server.",
        codes=(Code.UNKNOWN_TOOL,),
        check=_check_known,
    )
    async def pin_of(self, server: str) -> Pin | None:
        """Show what was pinned last; null if nothing was. The server is not connected."""
        return await self._pins.load(server)

    @operation(
        "servers.pin",
        f"POST {_ONE}/pin",
        "admin",
        "Pin an MCP server's tools as they are.",
        codes=(*_DOWN, Code.APPEND_CONFLICT),
        held_s=_ASKED_S,
    )
    async def pin(self, server: str, *, by: By = "") -> Pin:
        """Take a server's tools as they are now, whatever they are.

        Raises NotFoundError or StateError.
        """
        return await self._record(server, await self.definitions(server), how="pin", by=by)

    @operation(
        "servers.diff",
        f"POST {_ONE}/diff",
        "admin",
        "Show what changed since the pin.",
        codes=(*_DOWN, Code.STREAM_NOT_FOUND),
        held_s=_ASKED_S,
        repeatable=True,
    )
    async def diff(self, server: str) -> ServerDiff:
        """Show what changed in a server's tools since they were pinned, with the digest that an approval brings back.

        Raises NotFoundError if nothing was pinned, or StateError.
        """
        pin = await self._pins.load(server)
        if pin is None:
            msg = f"the MCP server {server} was never pinned"
            raise NotFoundError(msg, code=Code.STREAM_NOT_FOUND, remedy=f"Pin it: remit mcp pin {server}")
        today = await self.definitions(server)
        changes = pin.compare(today)
        return ServerDiff(
            server=server,
            pin=pin,
            changes=changes,
            digest=fingerprint(pin, today),
            tools=tuple(_diffs(pin, today, changes)),
        )

    @operation(
        "servers.approve",
        f"POST {_ONE}/approve",
        "admin",
        "Take the changes that were shown.",
        body=Body(
            "ApproveBody", "The digest of the changes that were shown: an approval of anything else does not count."
        ),
        codes=(*_DOWN, Code.CONFIRMATION_MISMATCH, Code.APPEND_CONFLICT),
        held_s=_ASKED_S,
        example={"digest": "sha256:…"},
    )
    async def approve(self, server: str, shown: Annotated[str, WireName("digest")], *, by: By = "") -> Pin:
        """Take the changes that were shown.

        `shown` is their digest. Raises StateError where it is not these any more.
        """
        pin = await self._pins.load(server)
        today = await self.definitions(server)
        if pin is None or fingerprint(pin, today) != shown:
            msg = f"the tools of {server} have changed since they were shown"
            raise StateError(msg, code=Code.CONFIRMATION_MISMATCH, remedy=f"Review them again: remit mcp diff {server}")
        return await self._record(server, today, how="approve", by=by, over=pin)

    async def _record(
        self, server: str, definitions: Mapping[str, dict[str, Any]], *, how: How, by: str, over: Pin | None = None
    ) -> Pin:
        try:
            pin = await self._pins.record(server, definitions, how=how, by=by, over=over)
        except AppendConflictError as error:
            msg = f"someone else pinned {server} at the same moment"
            raise StateError(
                msg, code=Code.APPEND_CONFLICT, remedy=f"Review them again: remit mcp diff {server}"
            ) from error
        self._catalog.invalidate(PREFIX + server)
        return pin

    def remote(self, server: str) -> Remote:
        """The server's provider. Raises NotFoundError."""
        provider: object = self._catalog.provider(PREFIX + server)
        if not isinstance(provider, Remote):
            msg = f"there is no MCP server {server!r}"
            raise NotFoundError(msg, code=Code.UNKNOWN_TOOL, remedy="`remit mcp list` lists them.")
        return provider


def _down(error: ProviderError) -> StateError:
    remedy = "Check its command or url, and what it last wrote."
    return StateError(str(error), code=Code.TOOL_UNAVAILABLE, remedy=remedy)


def fingerprint(pin: Pin, definitions: Mapping[str, dict[str, Any]]) -> str:
    """Return what is shown of both sides, as one digest."""
    return digest({"pin": pin.seq, "tools": {name: hash_of(raw) for name, raw in definitions.items()}})


def _diffs(pin: Pin, today: Mapping[str, dict[str, Any]], changes: Changes) -> Iterator[ToolDiff]:
    for how, names in (("changed", changes.changed), ("added", changes.added), ("removed", changes.removed)):
        for name in names:
            old, new = pin.definitions.get(name), today.get(name)
            yield ToolDiff(
                name=name,
                how=how,
                drift=_drift(old, new) if how == "changed" else "",
                lines=_lines(_pretty(old), _pretty(new)),
                fields=tuple(_fields(old or {}, new or {})),
            )


def _fields(old: dict[str, Any], new: dict[str, Any]) -> Iterator[FieldDiff]:
    for key in dict.fromkeys([*_KEYS, *sorted({*old, *new} - {"name"})]):
        if old.get(key) != new.get(key):
            yield FieldDiff(field=key, lines=_lines(_pretty(old.get(key)), _pretty(new.get(key))))


def _drift(old: dict[str, Any] | None, new: dict[str, Any] | None) -> str:
    if old is None or new is None:
        return ""
    sides = [compare_input(_schema(old, "inputSchema"), _schema(new, "inputSchema"))]
    sides.append(compare_output(_schema(old, "outputSchema"), _schema(new, "outputSchema")))
    drift = worst(*sides)
    return (DriftClass.ANNOTATION_ONLY if drift is DriftClass.IDENTICAL else drift).value


def _schema(raw: dict[str, Any], which: str) -> dict[str, Any] | None:
    schema = raw.get(which)
    return schema if isinstance(schema, dict) else None


def _lines(old: list[str], new: list[str]) -> tuple[str, ...]:
    if len(old) + len(new) > _COMPARED:
        return (*(f"- {line}" for line in old), *(f"+ {line}" for line in new))
    return tuple(f"{line[0]} {line[2:]}" for line in difflib.ndiff(old, new) if line[0] != "?")


def _pretty(raw: Any) -> list[str]:
    if raw is None:
        return []
    if isinstance(raw, str):
        return raw.split("\n")
    return msgspec.json.format(msgspec.json.encode(raw, order="sorted"), indent=2).decode().split("\n")


STREAM: Final = "mcp_restarts"
KIND: Final = "mcp_restarts"
"""The kind of the stream."""
LOOK_S: Final = 1.0
"""Seconds between two looks at least."""


class Restarts:
    """The restarts that were asked for on one journal."""

    def __init__(self, journal: Journal, catalog: Catalog) -> None:
        self._journal = journal
        self._catalog = catalog
        self._process = str(Owner.this())
        self._position: int | None = None
        """The last request that was looked at; None: none is ours yet."""
        self._under_way = Tasks()

    async def ask(self, server: str, by: str, *, here: bool) -> None:
        """Have processes start a server again; this one not, if it was restarted `here`. Durable when it returns."""
        request = McpRestartRequested(server=server, by=by, process=self._process if here else "")
        await self._journal.post(STREAM, KIND, request, wakes=(STREAM,))

    async def look(self) -> None:
        """Begin to restart the servers of this process that others asked for since it looked last."""
        if self._position is None:
            head = await self._journal.head(STREAM)
            self._position = head.seq if head is not None else 0
        for event in await self._journal.page(STREAM, self._position):
            self._position = event.seq
            request = decode(event.kind, event.data)
            if isinstance(request, McpRestartRequested) and request.process != self._process:
                provider: object = self._catalog.provider(PREFIX + request.server)
                if isinstance(provider, Remote):
                    self._under_way.begin(provider.restart(request.by))

    async def obey(self) -> None:
        """Look whenever heads change, until this is cancelled. Raises JournalError."""
        mark = 0
        try:
            while True:
                mark = await self._journal.heads_changed(mark)
                await self.look()
                await self._journal.clock.sleep(LOOK_S)
        finally:
            self._under_way.cancel()
