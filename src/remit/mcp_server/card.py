"""The server card: what a client may know of the server before it connects (SEP-2127).

There is one where the operator has said at which URL people reach the server, and it tells that alone: who may connect
and what is offered, a client learns once it has connected. It needs no token.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from remit.codes import Code
from remit.http.access import Access
from remit.http.problem import METADATA, HttpProblem
from remit.http.router import REQUEST, PartMount, RouterRequest
from remit.mcp_server.request import PATH
from remit.version import __version__

if TYPE_CHECKING:
    from starlette.types import Receive, Send

    from remit.http.issuers import Issuers

PATHS: Final = ("/.well-known/mcp", f"{PATH}/server-card")
"""Where it is: at the place that clients look at first, also as `server-card.json` there, and beside the endpoint."""
_FILE: Final = "/server-card.json"
_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
_NOBODY: Final = Access(None, frozenset())


def card_of(public_url: str, *, tokens: bool) -> dict[str, Any]:
    """The card of a server that is reached at this URL; `tokens`: whether clients need one."""
    remote: dict[str, Any] = {"type": "streamable-http", "url": f"{public_url.rstrip('/')}{PATH}"}
    if tokens:
        token = {"name": "Authorization", "description": "Bearer TOKEN", "isRequired": True, "isSecret": True}
        remote["headers"] = [token]
    return {
        "$schema": _SCHEMA,
        "name": f"{_reversed(urlsplit(public_url).hostname or 'localhost')}/remit",
        "title": "Remit",
        "description": "Tools that are checked against the operator's policy, and recorded.",
        "version": __version__,
        "remotes": [remote],
    }


async def _nobody(_headers: Mapping[str, str]) -> Access:
    return _NOBODY


def card_mounts(public_url: str, *, tokens: bool) -> list[PartMount]:
    """Its places; none without a URL."""
    if not public_url:
        return []
    card = card_of(public_url, tokens=tokens)
    paths = frozenset({*PATHS, *(path + _FILE for path in PATHS)})
    part = JsonDocument(lambda _: card, paths, b"application/mcp-server-card+json")
    return [PartMount(path, part, None, _nobody) for path in PATHS]


def resource_mounts(issuers: Issuers | None) -> list[PartMount]:
    """The places where clients find out whose tokens count (RFC 9728); none if those of no issuer do."""
    if issuers is None:
        return []

    def metadata(host: str) -> dict[str, Any]:
        return {
            "resource": f"{issuers.at(host)}{PATH}",
            "resource_name": "Remit",
            "authorization_servers": issuers.urls,
            "bearer_methods_supported": ["header"],
        }

    part = JsonDocument(metadata, frozenset({METADATA, METADATA + PATH}), b"application/json")
    return [PartMount(METADATA, part, None, _nobody)]


class JsonDocument:
    """Answers with a JSON document, to anyone."""

    def __init__(self, document: Callable[[str], dict[str, Any]], paths: frozenset[str], kind: bytes) -> None:
        self._document = document
        self._paths = paths
        self._kind = kind

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        yield

    def close_streams(self) -> None:
        """Nothing is streamed."""

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:  # noqa: ARG002 - of ASGI
        if scope["path"].removesuffix("/") not in self._paths:
            raise HttpProblem(Code.PATH_UNKNOWN)
        if scope["method"] not in {"GET", "HEAD"}:
            raise HttpProblem(Code.METHOD_NOT_ALLOWED, headers={"allow": "GET, HEAD"})
        request: RouterRequest = scope[REQUEST]
        body = msgspec.json.encode(self._document(request.headers["host"]))
        headers = [
            (b"content-type", self._kind),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"max-age=3600"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


def _reversed(host: str) -> str:
    """A host's name from its end, as names of servers begin; an address stays as it is."""
    try:
        return str(ip_address(host)).replace(":", "-")
    except ValueError:
        return ".".join(reversed(host.split(".")))
