"""Who may connect over HTTP: programs on this machine, or who brings a token; and no web page of somebody else's."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from remit.mcp_server.refusal import Refusal

if TYPE_CHECKING:
    from remit.settings.mcp_client import McpClient

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_SCHEMES: Final = ("http", "https")
_WHO: Final = 'Bearer error="invalid_token", error_description="Authentication required"'


class Guard:
    """Looks at a request before anything of it is read."""

    def __init__(self, names: Sequence[str], clients: Sequence[McpClient]) -> None:
        """Be known as `names` and nothing else; let in `clients`, or everybody where there are none."""
        self._names = frozenset(f"[{name}]" if ":" in name else name.lower() for name in names)
        self._clients = tuple((client.token.encode(), client.principal) for client in clients)

    def admit(self, headers: Mapping[str, str]) -> str | None:
        """Whose request it is; None where nobody has a token. Raises Refusal.

        A page in a browser can be made to reach us under a name of its own (DNS rebinding); it cannot hide that name.
        """
        principal = self._principal(headers.get("authorization", "")) if self._clients else None
        if not self._known(headers.get("host", "")):
            raise Refusal(421, "Invalid Host header")
        scheme, between, host = headers.get("origin", "").partition("://")
        if (scheme or between) and not (scheme in _SCHEMES and self._known(host)):
            raise Refusal(403, "Invalid Origin header")
        return principal

    def _known(self, host: str) -> bool:
        """Whether we go by this name, with any port."""
        name, colon, port = host.lower().rpartition(":")
        if not colon or port.endswith("]"):
            return host.lower() in self._names
        return name in self._names and port.isascii() and port.isdigit()

    def _principal(self, authorization: str) -> str:
        """Every token is compared, in constant time, so that none can be guessed by measuring."""
        kind, _, token = authorization.partition(" ")
        given = token.encode() if kind.lower() == "bearer" else b""
        found = None
        for known, principal in self._clients:
            if hmac.compare_digest(known, given):
                found = principal
        if found is None:
            raise Refusal(401, "Authentication required", www_authenticate=_WHO)
        return found
