"""The SDK's client session, asked for answers as they came: its models drop what they do not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

if TYPE_CHECKING:
    from mcp.shared.dispatcher import CallOptions

    from remit.providers.mcp.answers import Answers
    from remit.tools.peer import Peer

_MAX_ROUNDS: Final = 10
"""Times a server may ask something back before it answers a request."""


class Session(ClientSession):
    """A client session that also takes and gives plain JSON objects, in whatever era was agreed on."""

    async def ask(
        self, method: str, params: Mapping[str, Any], opts: CallOptions, peer: Peer | None = None
    ) -> dict[str, Any]:
        """The raw result of a request, made in the name of `peer`. Raises MCPError."""
        body = dict(params)
        self._stamp({"method": method, "params": body}, opts)  # the SDK offers no other way to the era's envelope
        if peer is not None and self.protocol_version in MODERN_PROTOCOL_VERSIONS:
            body["_meta"] = {**body.get("_meta", {}), **peer.meta}
        return await self._dispatcher.send_raw_request(method, body, opts)

    async def settle(
        self, method: str, params: Mapping[str, Any], opts: CallOptions, answers: Answers, peer: Peer | None
    ) -> dict[str, Any]:
        """The final result of a request; what the server asks back on the way is answered. Raises MCPError."""
        given: dict[str, Any] = {}
        with answers.calling(peer):
            for _ in range(_MAX_ROUNDS):
                result = await self.ask(method, {**params, **given}, {**opts}, peer)
                if result.get("resultType") != "input_required":
                    return result
                asked = result.get("inputRequests")
                given = {"inputResponses": await answers.all(asked if isinstance(asked, dict) else {}, peer)}
                if (state := result.get("requestState")) is not None:
                    given["requestState"] = state
        raise MCPError(code=INTERNAL_ERROR, message=f"it asked back more than {_MAX_ROUNDS} times")
