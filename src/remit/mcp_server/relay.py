"""What one governed server offers beside its tools, passed on as it is: prompts, resources, completion, log levels.

These are read and not called: no policy decides on them. Each request leaves a record in the client's session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from remit.errors import ProviderError
from remit.tools.remote import MCP_ERROR

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from remit.mcp_server.client import Client
    from remit.service.sessions import Sessions
    from remit.tools.peer import Peer
    from remit.tools.remote import Remote

_BY_CAPABILITY: Final[Mapping[str, Mapping[str, type[types.RequestParams]]]] = {
    "prompts": {"prompts/list": types.PaginatedRequestParams, "prompts/get": types.GetPromptRequestParams},
    "resources": {
        "resources/list": types.PaginatedRequestParams,
        "resources/templates/list": types.PaginatedRequestParams,
        "resources/read": types.ReadResourceRequestParams,
        "resources/subscribe": types.SubscribeRequestParams,
        "resources/unsubscribe": types.UnsubscribeRequestParams,
    },
    "completions": {"completion/complete": types.CompleteRequestParams},
    "logging": {"logging/setLevel": types.SetLevelRequestParams},
}
_CACHEABLE: Final = frozenset({"prompts/list", "resources/list", "resources/templates/list", "resources/read"})
_OURS: Final = ("_meta", "requestState", "inputResponses")
_NEWER: Final = ("resultType", "ttlMs", "cacheScope")
_TARGET: Final = 500


class Relay:
    """Passes requests on to one server."""

    def __init__(self, remote: Remote, sessions: Sessions, capabilities: Mapping[str, Any]) -> None:
        """Pass on what a server with these `capabilities` answers."""
        self._remote = remote
        self._sessions = sessions
        self._methods = {
            method: params
            for capability, methods in _BY_CAPABILITY.items()
            if capability in capabilities
            for method, params in methods.items()
        }

    def __contains__(self, method: str) -> bool:
        """Whether requests of this method are passed on."""
        return method in self._methods

    def subscribe(self, listener: Callable[[str, Mapping[str, Any]], None]) -> None:
        """Have `listener` told what the server tells everyone."""
        self._remote.subscribe(listener)

    def register(self, server: Server[Any]) -> None:
        """Have the server declare what is passed on; the requests themselves are answered before its handlers."""
        for method, params in self._methods.items():
            server.add_request_handler(method, params, _never)

    async def answer(
        self, client: Client, method: str, params: Mapping[str, Any], peer: Peer, version: str
    ) -> dict[str, Any]:
        """What the server answers. Raises MCPError."""
        asked = {key: value for key, value in params.items() if key not in _OURS}
        try:
            result = await self._remote.relay(method, asked, peer)
        except ProviderError as error:
            await self._record(client, method, asked, str(error))
            raise error_of(error) from error
        await self._record(client, method, asked, "")
        if version not in MODERN_PROTOCOL_VERSIONS:
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
    return MCPError(code=types.INTERNAL_ERROR, message=str(error))


async def _never(_ctx: object, params: types.RequestParams) -> dict[str, Any]:
    msg = f"a relayed request reached the SDK: {params}"
    raise AssertionError(msg)
