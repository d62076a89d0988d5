"""Serving any number of clients over streamable HTTP: on loopback, or to who brings a token."""

from __future__ import annotations

import asyncio
import hmac
import logging
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.routing import Route

from remit.codes import Code
from remit.errors import SettingsError

if TYPE_CHECKING:
    from remit.mcp_server.face import Face
    from remit.settings.mcp_client import McpClient

PATH: Final = "/mcp"
GRACE_S: Final = 2
"""Seconds for requests under way when the server stops."""
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


class Tokens:
    """Whose token it is (`mcp.server.auth.provider.TokenVerifier`)."""

    def __init__(self, clients: Sequence[McpClient]) -> None:
        """Know these clients; their tokens are the expanded ones."""
        self._clients = tuple(clients)

    async def verify_token(self, token: str) -> AccessToken | None:
        """The client; every token is compared, in constant time, so that none can be guessed by measuring."""
        found: str | None = None
        for client in self._clients:
            if hmac.compare_digest(client.token.encode(), token.encode()):
                found = client.principal
        return AccessToken(token=token, client_id=found, scopes=[]) if found is not None else None


def application(face: Face, *, host: str, hosts: Sequence[str], clients: Sequence[McpClient]) -> Starlette:
    """The ASGI application that answers at `/mcp`.

    `host` is where it listens, `hosts` are further names that clients may know it by. Raises SettingsError where
    anybody on the network could call.
    """
    if host not in LOOPBACK and not clients:
        raise SettingsError(
            f"{host} can be reached by others, and nobody has a token",
            code=Code.SETTINGS_INVALID,
            remedy="Name who may connect in [[mcp.clients]], or listen on 127.0.0.1.",
        )
    schemes, ports = ("http", "https"), ("", ":*")
    names = [*(LOOPBACK if host in LOOPBACK else (host,)), *hosts]
    shown = [f"[{name}]" if ":" in name else name for name in names]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*shown, *(f"{name}:*" for name in shown)],
        allowed_origins=[f"{scheme}://{name}{port}" for scheme in schemes for name in shown for port in ports],
    )
    manager = StreamableHTTPSessionManager(face.server, security_settings=security)
    endpoint: Any = StreamableHTTPASGIApp(manager)
    middleware = []
    if clients:
        endpoint = RequireAuthMiddleware(endpoint, [])
        backend = BearerAuthBackend(Tokens(clients))
        middleware = [Middleware(AuthenticationMiddleware, backend=backend), Middleware(AuthContextMiddleware)]
    return Starlette(
        routes=[Route(PATH, endpoint=endpoint)], middleware=middleware, lifespan=lambda _app: manager.run()
    )


async def serve(app: Starlette, listening: socket.socket, stop: asyncio.Event) -> None:
    """Serve on a socket that listens, until told to stop; requests under way have `GRACE_S` to end."""
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=GRACE_S, server_header=False
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        log = logging.getLogger("uvicorn.error")
        level = log.level
        log.setLevel(logging.CRITICAL)  # streams that clients keep open are cut off: that is no error
        server.should_exit = True
        stopping.cancel()
        try:
            await serving
        finally:
            log.setLevel(level)


class _Server(uvicorn.Server):
    """Leaves signals to the process it runs in."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
