"""The offers of all governed servers beside their tools, at one face: names prefixed, URIs led back to their server.

A prompt is `mcp__<server>__<prompt>`, as a tool is. A URI stays as it is: others refer to it, such as the definition of
a tool with a page of its own (`ui://`, MCP Apps). It leads to the server that listed it, whose template begins like it,
whose tool names it, or, failing that, that has others of its scheme. Of two servers with one URI, the first by name has
it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from remit.errors import ProviderError
from remit.jsonrpc.protocol import INVALID_PARAMS, MCPError
from remit.mcp_server.relay import PASSED, Look, RelayPassage, Sees, extensions_of, in_era

if TYPE_CHECKING:
    from remit.mcp_server.changes import ListChanges
    from remit.mcp_server.request import ClientRequest, McpCaller
    from remit.service.mcp import McpServers
    from remit.service.sessions import Sessions
    from remit.tools.peer import Peer
    from remit.tools.remote import RemoteStatus

PATIENCE_S: Final = 10.0
"""Seconds that a client waits for servers that are still connecting."""
HANDSHAKE_S: Final = 3.0
"""The same at the handshake: clients give up a server that takes long to begin."""
MAX_PAGES: Final = 200
_NOT_FOUND: Final = -32002
"""The protocol's code for a resource that there is not."""
_PREFIX: Final = "mcp__"
_OURS: Final = ("tools", "extensions", "experimental")
"""Capabilities that are not those of a request that is passed on."""
_log: Final = logging.getLogger("remit.mcp")


class Relays:
    """Passes requests on to many servers."""

    wraps: Final = False
    info: Final = None
    """We speak in our own name."""

    def __init__(
        self, servers: McpServers, sessions: Sessions, *, instructions: int, handshake_s: float = HANDSHAKE_S
    ) -> None:
        self._servers, self._sessions = servers, sessions
        self._limit = instructions
        self._handshake_s = handshake_s
        self._uris: dict[str, dict[str, set[str]]] = {}
        """The URIs, templates among them, by server and the list that they were in."""
        self._changes: ListChanges | None = None
        self._passages: dict[str, RelayPassage] = {}
        self.renew()

    def passes(self, method: str) -> bool:
        """Return whether this is passed on: of many servers, none can be meant by a method of its own."""
        return method in PASSED

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass nothing on: no server can be meant."""

    def subscribe(self, changes: ListChanges) -> None:
        """Have clients told what the servers tell everyone; of a changed resource, those that subscribed to it."""
        self._changes = changes
        for passage in self._passages.values():
            passage.remote.subscribe(changes.heard_by_followers)

    def renew(self) -> None:
        """Pass on to the servers that there are now."""
        before, known = self._passages, {name: self._servers.remote(name) for name in self._servers.known()}
        self._passages = {
            name: before[name]
            if name in before and before[name].remote is remote
            else RelayPassage(remote, self._sessions)
            for name, remote in known.items()
        }
        for name in self._uris.keys() - known.keys():
            del self._uris[name]
        for name, passage in self._passages.items():
            if self._changes is not None and passage is not before.get(name):
                passage.remote.subscribe(self._changes.heard_by_followers)

    async def relist(self) -> None:
        """Ask none again: the others have tools."""

    async def introduce(self, ours: dict[str, Any], look: Look) -> dict[str, Any]:
        """The answer to a handshake: ours, with a heading for each server, and with the capabilities that they have."""
        sees = await look(self._handshake_s) if self._passages else (lambda _name: None)
        statuses = await self._statuses(sees)
        parts = [
            f"## {name}\n\n{_cut(status.instructions, self._limit)}"
            for name, status in statuses.items()
            if status.instructions and self._limit
        ]
        capabilities = dict(ours.get("capabilities") or {})
        if all(sees(name) is False or name in statuses for name in self._passages):  # else one may have more
            own = {name: value for name, value in capabilities.items() if name in _OURS}
            capabilities = own | _joined([status.capabilities for status in statuses.values()])
        extensions = {
            name: value for status in statuses.values() for name, value in extensions_of(status.introduction).items()
        }
        if extensions:
            capabilities["extensions"] = {**extensions, **capabilities.get("extensions", {})}
        return {**ours, "capabilities": capabilities, "instructions": "\n\n".join([*parts, ours["instructions"]])}

    async def answer(self, client: McpCaller, request: ClientRequest, peer: Peer, look: Look) -> dict[str, Any]:
        """Return what the server answers that a request is about, or what all answer to a list. Raises MCPError."""
        passed, sees = PASSED[request.method], await look(PATIENCE_S)
        if passed.member:
            return await self._listed(client, request, peer, sees)
        match passed.key:
            case "name":
                server, own = self._prompt(request.params.get("name"), sees)
                return await self._passages[server].ask(client, request, peer, {**request.params, "name": own})
            case "uri":
                server = await self._owner(request.params.get("uri"), client, request, peer, sees)
                return await self._passages[server].ask(client, request, peer)
            case "ref":
                return await self._completed(client, request, peer, sees)
            case _:
                return await self._told(client, request, peer, sees)

    # --- all servers

    async def _statuses(self, sees: Sees, capability: str = "") -> dict[str, RemoteStatus]:
        """Those of the servers that are up, by name, as far as a client sees them."""
        names = [name for name in self._passages if sees(name)]
        statuses = await asyncio.gather(*(self._status(name) for name in names))
        return {
            name: status
            for name, status in zip(names, statuses, strict=True)
            if status is not None and (not capability or capability in status.capabilities)
        }

    async def _status(self, name: str) -> RemoteStatus | None:
        if (passage := self._passages.get(name)) is None:
            return None  # removed meanwhile
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await passage.remote.status()
        except (ProviderError, TimeoutError) as error:
            _log.info("the MCP server %s is left out: %s", name, error)
            return None

    async def _listed(self, client: McpCaller, request: ClientRequest, peer: Peer, sees: Sees) -> dict[str, Any]:
        """The lists of all servers as one, on one page."""
        passed = PASSED[request.method]
        servers = list(await self._statuses(sees, passed.capability))
        lists = await asyncio.gather(*(self._pages(name, client, request, peer) for name in servers))
        entries: dict[str, dict[str, Any]] = {}
        for server, listed in zip(servers, lists, strict=True):
            for entry in listed:
                key = entry[passed.key] if passed.key != "name" else f"{_PREFIX}{server}__{entry['name']}"
                if key in entries:
                    _log.warning("%s of the MCP server %s is left out: another has it as well", key, server)
                entries.setdefault(key, {**entry, passed.key: key})
        return in_era(request, {passed.member: list(entries.values())})

    async def _pages(self, server: str, client: McpCaller, request: ClientRequest, peer: Peer) -> list[dict[str, Any]]:
        """All entries of a server's list that have a name; none where it does not answer."""
        passed, cursor = PASSED[request.method], None
        if (passage := self._passages.get(server)) is None:
            return []
        entries: list[dict[str, Any]] = []
        try:
            for _ in range(MAX_PAGES):
                page = await passage.ask(client, request, peer, {"cursor": cursor} if cursor else {})
                entries_listed = page.get(passed.member)
                entries += (
                    [each for each in entries_listed if isinstance(each, dict)]
                    if isinstance(entries_listed, list)
                    else []
                )
                following = page.get("nextCursor")
                if not isinstance(following, str) or following in {"", cursor}:
                    break
                cursor = following
        except MCPError as error:
            _log.warning("%s of the MCP server %s failed: %s", request.method, server, error.message)
        named = [each for each in entries if isinstance(each.get(passed.key), str)]
        if passed.key != "name":
            self._uris.setdefault(server, {})[request.method] = {each[passed.key] for each in named}
        return named

    async def _told(self, client: McpCaller, request: ClientRequest, peer: Peer, sees: Sees) -> dict[str, Any]:
        """Tell all servers that want to know."""
        servers = await self._statuses(sees, PASSED[request.method].capability)
        results = await asyncio.gather(
            *(self._passages[name].ask(client, request, peer) for name in servers), return_exceptions=True
        )
        failures = [each for each in results if isinstance(each, BaseException)]
        if failures and len(failures) == len(results):
            raise failures[0]
        return {}

    # --- one server

    def _prompt(self, name: object, sees: Sees) -> tuple[str, str]:
        """The server of a prompt, and its own name for it. Raises MCPError."""
        if isinstance(name, str) and name.startswith(_PREFIX):
            server, _, own = name.removeprefix(_PREFIX).partition("__")
            if server in self._passages and own and sees(server):
                return server, own
        raise MCPError(code=INVALID_PARAMS, message=f"Unknown prompt: {str(name)[:100]}")

    async def _completed(self, client: McpCaller, request: ClientRequest, peer: Peer, sees: Sees) -> dict[str, Any]:
        ref = request.params.get("ref")
        if not isinstance(ref, dict):
            raise MCPError(code=INVALID_PARAMS, message="a completion has a ref")
        if ref.get("type") == "ref/prompt":
            server, own = self._prompt(ref.get("name"), sees)
            ref = {**ref, "name": own}
        else:
            server = await self._owner(ref.get("uri"), client, request, peer, sees)
        return await self._passages[server].ask(client, request, peer, {**request.params, "ref": ref})

    async def _owner(self, uri: object, client: McpCaller, request: ClientRequest, peer: Peer, sees: Sees) -> str:
        """The server that a URI leads to; where that is not known, servers list what they have. Raises MCPError."""
        if not isinstance(uri, str):
            raise MCPError(code=INVALID_PARAMS, message="a resource has a uri")
        servers = list(await self._statuses(sees, "resources"))
        for again in (False, True):
            if again:
                await asyncio.gather(
                    *(
                        self._pages(server, client, request._replace(method=method), peer)
                        for server in servers
                        for method in ("resources/list", "resources/templates/list")
                    )
                )
                await asyncio.gather(*(self._learn(server) for server in servers))
            for fits in (_is, _begins, _has_scheme) if again else (_is, _begins):
                for server in servers:
                    if any(fits(uri, known) for known in self._known(server)):
                        return server
        raise MCPError(code=_NOT_FOUND, message="Resource not found", data={"uri": uri})

    def _known(self, server: str) -> Iterator[str]:
        for uris in self._uris.get(server, {}).values():
            yield from uris

    async def _learn(self, server: str) -> None:
        """Note the pages that a server's tools name (MCP Apps)."""
        if (passage := self._passages.get(server)) is None:
            return
        try:
            definitions = await passage.remote.definitions()
        except ProviderError:
            return  # then it does not answer for them either
        self._uris.setdefault(server, {})["tools/list"] = {
            uri for each in definitions.values() for uri in _pages_of(each)
        }


def _joined(capabilities: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The capabilities of all servers that requests of ours need, each with what any server says of it."""
    joined: dict[str, Any] = {}
    for name in sorted({passed.capability for passed in PASSED.values()}):
        having = [each[name] for each in capabilities if isinstance(each.get(name), Mapping)]
        if having:
            keys = dict.fromkeys(key for each in having for key in each)
            joined[name] = {key: next(filter(None, (each.get(key) for each in having)), False) for key in keys}
    return joined


def _pages_of(definition: Mapping[str, Any]) -> Iterator[str]:
    """The URIs of pages in a tool's definition (`_meta.ui.resourceUri`, and its older flat form)."""
    meta = definition.get("_meta")
    if not isinstance(meta, dict):
        return
    ui = meta.get("ui")
    for uri in (meta.get("ui/resourceUri"), ui.get("resourceUri") if isinstance(ui, dict) else None):
        if isinstance(uri, str):
            yield uri


def _is(uri: str, known: str) -> bool:
    return uri == known


def _begins(uri: str, known: str) -> bool:
    """Return whether a URI begins like a template, up to the template's first variable (RFC 6570)."""
    literal, variable, _ = known.partition("{")
    return bool(variable) and len(literal) > len(_scheme(known)) and uri.startswith(literal)


def _has_scheme(uri: str, known: str) -> bool:
    return _scheme(uri) == _scheme(known) != ""


def _scheme(uri: str) -> str:
    scheme, between, _ = uri.partition(":")
    return f"{scheme.lower()}:" if between else ""


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit].rstrip()} …"
