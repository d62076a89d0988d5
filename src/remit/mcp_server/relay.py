"""The offer of one governed server beside its tools, passed on as it is: prompts, resources, completion, log levels.

These are read and not called: no policy decides on them. Each request leaves a record in the client's session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from remit.errors import ProviderError
from remit.jsonrpc.protocol import INTERNAL_ERROR, SERVER_INFO_META_KEY, TASKS, MCPError
from remit.tools.remote import MCP_ERROR

if TYPE_CHECKING:
    from remit.mcp_server.client import Client
    from remit.mcp_server.request import ClientRequest
    from remit.service.sessions import Sessions
    from remit.tools.peer import Peer
    from remit.tools.remote import Remote, RemoteStatus

_BY_CAPABILITY: Final = {
    "prompts": ("prompts/list", "prompts/get"),
    "resources": (
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
    ),
    "completions": ("completion/complete",),
    "logging": ("logging/setLevel",),
}
_OFFERED: Final = frozenset(
    {"tools", "prompts", "resources", "completions", "logging", "tasks", "extensions", "experimental"}
)
"""The capabilities of a server that are passed on."""
_CACHEABLE: Final = frozenset({"prompts/list", "resources/list", "resources/templates/list", "resources/read"})
_OURS: Final = ("_meta", "requestState", "inputResponses")
_NEWER: Final = ("resultType", "ttlMs", "cacheScope")
_TARGET: Final = 500


class Relay:
    """Passes requests on to one server."""

    def __init__(self, remote: Remote, sessions: Sessions, status: RemoteStatus) -> None:
        """Pass on what a server of this `status` answers, and speak in its name."""
        self._remote = remote
        self._sessions = sessions
        self._introduction = status.introduction
        capabilities = status.capabilities
        self.methods = frozenset(
            method for capability, methods in _BY_CAPABILITY.items() if capability in capabilities for method in methods
        )
        """Those of the requests that are passed on."""

    @property
    def info(self) -> dict[str, Any] | None:
        """The server as it describes itself: name, title, version, icons, website."""
        info = self._introduction.get("serverInfo")
        return info if isinstance(info, dict) and isinstance(info.get("name"), str) else None

    def introduce(self, ours: dict[str, Any]) -> dict[str, Any]:
        """The answer to a handshake: ours in the server's name, with its capabilities, and our words after its own."""
        theirs, info = self._introduction, self.info
        if not theirs:
            return ours
        capabilities = theirs.get("capabilities")
        offered = capabilities if isinstance(capabilities, dict) else {}
        said = {"capabilities": {name: value for name, value in offered.items() if name in _OFFERED}}
        extensions = said["capabilities"].get("extensions")
        if isinstance(extensions, dict) and TASKS in extensions:  # tasks are ours, whether the server makes them or not
            said["capabilities"]["extensions"] = {name: extensions[name] for name in extensions if name != TASKS}
        words = [
            text for text in (theirs.get("instructions"), ours.get("instructions")) if isinstance(text, str) and text
        ]
        if info is not None and "serverInfo" in ours:
            said["serverInfo"] = info
        meta = ours.get("_meta")
        if info is not None and isinstance(meta, dict) and SERVER_INFO_META_KEY in meta:
            said["_meta"] = {**meta, SERVER_INFO_META_KEY: info}
        return {**ours, **said, "instructions": "\n\n".join(words)}

    def subscribe(self, listener: Callable[[str, Mapping[str, Any]], None]) -> None:
        """Have `listener` told what the server tells everyone."""
        self._remote.subscribe(listener)

    async def answer(self, client: Client, request: ClientRequest, peer: Peer) -> dict[str, Any]:
        """Return what the server answers. Raises MCPError."""
        method = request.method
        asked = {key: value for key, value in request.params.items() if key not in _OURS}
        if peer.attached:
            asked["_meta"] = dict(peer.attached)
        try:
            result = await self._remote.relay(method, asked, peer)
        except ProviderError as error:
            await self._record(client, method, asked, str(error))
            raise error_of(error) from error
        await self._record(client, method, asked, "")
        if not request.modern:
            return {key: value for key, value in result.items() if key not in _NEWER}
        return {"ttlMs": 0, "cacheScope": "private", **result} if method in _CACHEABLE else result

    async def _record(self, client: Client, method: str, asked: Mapping[str, Any], error: str) -> None:
        target = next((asked[key] for key in ("uri", "name") if isinstance(asked.get(key), str)), "")
        provider_id, session = self._remote.provider_id, await client.session()
        await self._sessions.relayed(session, provider_id, method, target[:_TARGET], error[:_TARGET])


def error_of(error: ProviderError) -> MCPError:
    """The server's own error where it gave one, else ours."""
    detail = error.detail.get(MCP_ERROR) if isinstance(error.detail, dict) else None
    if isinstance(detail, dict):
        return MCPError(code=detail["code"], message=detail["message"], data=detail.get("data"))
    return MCPError(code=INTERNAL_ERROR, message=str(error))
