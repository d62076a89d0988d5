"""The offer of one governed server beside its tools, passed on as it is: prompts, resources, completion, log levels.

These are read and not called: no policy decides on them. Each request leaves a record in the client's session.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from remit.errors import ProviderError
from remit.jsonrpc.protocol import INTERNAL_ERROR, SERVER_INFO_META_KEY, TASKS, MCPError
from remit.tools.peer import is_foreign
from remit.tools.remote import MCP_ERROR

if TYPE_CHECKING:
    from remit.mcp_server.changes import ListChanges
    from remit.mcp_server.request import ClientRequest, McpCaller
    from remit.service.sessions import Sessions
    from remit.tools.peer import Peer
    from remit.tools.remote import Remote, RemoteStatus


class Passed(NamedTuple):
    """A request that is passed on."""

    capability: str
    """The capability of a server that takes it."""
    member: str = ""
    """Of a list: the member of its answer that holds the entries."""
    key: str = ""
    """The member of the request, or of each entry of a list, that names what it is about."""


PASSED: Final[Mapping[str, Passed]] = {
    "prompts/list": Passed("prompts", "prompts", "name"),
    "prompts/get": Passed("prompts", key="name"),
    "resources/list": Passed("resources", "resources", "uri"),
    "resources/templates/list": Passed("resources", "resourceTemplates", "uriTemplate"),
    "resources/read": Passed("resources", key="uri"),
    "resources/subscribe": Passed("resources", key="uri"),
    "resources/unsubscribe": Passed("resources", key="uri"),
    "completion/complete": Passed("completions", key="ref"),
    "logging/setLevel": Passed("logging"),
}
_CACHEABLE: Final = frozenset({"prompts/list", "resources/list", "resources/templates/list", "resources/read"})
_OURS: Final = ("_meta", "requestState", "inputResponses")
_NEWER: Final = ("resultType", "ttlMs", "cacheScope")
_TARGET: Final = 500
Sees = Callable[[str], bool | None]
"""Whether a client sees the server of this name; None: not known, since its tools are not."""
Look = Callable[[float], Awaitable[Sees]]
"""Finds that out; waits so many seconds at most for servers that are still connecting."""


class RelayPassage:
    """The way of requests to one server, each of which leaves a record."""

    def __init__(self, remote: Remote, sessions: Sessions) -> None:
        self.remote = remote
        self._sessions = sessions

    async def ask(
        self, client: McpCaller, request: ClientRequest, peer: Peer, params: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The server's answer in the words of the client's era, to `params` in place of its own. Raises MCPError."""
        method = request.method
        params_given = request.params if params is None else params
        passed = {key: value for key, value in params_given.items() if key not in _OURS}
        if peer.attached:
            passed["_meta"] = dict(peer.attached)
        try:
            result = await self.remote.relay(method, passed, peer, client.principal)
        except ProviderError as error:
            await self._record(client, method, passed, str(error))
            raise error_of(error) from error
        await self._record(client, method, passed, "")
        return in_era(request, result)

    async def _record(self, client: McpCaller, method: str, params: Mapping[str, Any], error: str) -> None:
        target = next((params[key] for key in ("uri", "name") if isinstance(params.get(key), str)), "")
        provider_id, session = self.remote.provider_id, await client.session()
        await self._sessions.relayed(session, provider_id, method[:_TARGET], target[:_TARGET], error[:_TARGET])


def in_era(request: ClientRequest, result: dict[str, Any]) -> dict[str, Any]:
    """A result in the words of the client's era."""
    if not request.modern:
        return {key: value for key, value in result.items() if key not in _NEWER}
    return {"ttlMs": 0, "cacheScope": "private", **result} if request.method in _CACHEABLE else result


def extensions_of(introduction: Mapping[str, Any]) -> dict[str, Any]:
    """The extensions that a server declared; not tasks, which are ours, whether the server makes them or not."""
    capabilities = introduction.get("capabilities")
    extensions = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    return {name: extensions[name] for name in extensions if name != TASKS} if isinstance(extensions, dict) else {}


class Relay:
    """Passes requests on to one server."""

    wraps: Final = True
    """We speak in its name."""

    def __init__(self, remote: Remote, sessions: Sessions, status: RemoteStatus) -> None:
        self._passage = RelayPassage(remote, sessions)
        self._introduction = status.introduction

    def passes(self, method: str) -> bool:
        """Return whether this is passed on: the server itself refuses what it does not offer."""
        return method in PASSED or is_foreign(method)

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass a notification of a client's own on."""
        await self._passage.remote.tell(method, params)

    def renew(self) -> None:
        """Pass on to the same server: it is the one that is wrapped."""

    @property
    def info(self) -> dict[str, Any] | None:
        """The server as it describes itself: name, title, version, icons, website."""
        info = self._introduction.get("serverInfo")
        if not isinstance(info, dict) or not isinstance(info.get("name"), str):
            return None
        return info if isinstance(info.get("version"), str) else {**info, "version": ""}

    async def introduce(self, ours: dict[str, Any], look: Look) -> dict[str, Any]:  # noqa: ARG002 - of many servers
        """The answer to a handshake: ours in the server's name, with its capabilities, and our words after its own."""
        theirs, info = self._introduction, self.info
        if not theirs:
            return ours
        capabilities = theirs.get("capabilities")
        offered = capabilities if isinstance(capabilities, dict) else {}
        members = {"capabilities": dict(offered)}
        if isinstance(members["capabilities"].get("extensions"), dict):
            members["capabilities"]["extensions"] = extensions_of(theirs)
        words = [
            text for text in (theirs.get("instructions"), ours.get("instructions")) if isinstance(text, str) and text
        ]
        if info is not None and "serverInfo" in ours:
            members["serverInfo"] = info
        meta = ours.get("_meta")
        if info is not None and isinstance(meta, dict) and SERVER_INFO_META_KEY in meta:
            members["_meta"] = {**meta, SERVER_INFO_META_KEY: info}
        return {**ours, **members, "instructions": "\n\n".join(words)}

    async def relist(self) -> None:
        """Have the server list its tools once more. Raises MCPError, its own where it refuses."""
        try:
            await self._passage.remote.definitions()
        except ProviderError as error:
            raise error_of(error) from error

    def subscribe(self, changes: ListChanges) -> None:
        """Have clients told what the server tells everyone."""
        self._passage.remote.subscribe(changes.heard)

    async def answer(self, client: McpCaller, request: ClientRequest, peer: Peer, look: Look) -> dict[str, Any]:  # noqa: ARG002 - of many servers
        """Return what the server answers. Raises MCPError."""
        return await self._passage.ask(client, request, peer)


def error_of(error: ProviderError) -> MCPError:
    """The server's own error where it gave one, else ours."""
    detail = error.detail.get(MCP_ERROR) if isinstance(error.detail, dict) else None
    if isinstance(detail, dict):
        return MCPError(code=detail["code"], message=detail["message"], data=detail.get("data"))
    return MCPError(code=INTERNAL_ERROR, message=str(error))
