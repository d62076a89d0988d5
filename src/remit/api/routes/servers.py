"""MCP servers over HTTP: which there are, what is pinned of them, what changed, and taking their tools."""

from __future__ import annotations

from typing import Final

import msgspec

from remit.api.route import ApiRequest, Route
from remit.codes import Code
from remit.service.mcp import ServerDiff, ServerEntry
from remit.tools.pins import Pin
from remit.tools.remote import RemoteStatus


class ApproveBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The digest of the changes that were shown: an approval of anything else does not count."""

    digest: str


async def page(asked: ApiRequest) -> list[ServerEntry]:
    """List the servers, with what is known of them. None is connected."""
    return await asked.service.servers.entries()


async def status(asked: ApiRequest) -> RemoteStatus:
    """Connect to a server and say who answers, as it says itself."""
    return await asked.service.servers.status(asked.path["server"])


async def pinned(asked: ApiRequest) -> Pin | None:
    """Show what was pinned last; null if nothing was. The server is not connected."""
    asked.service.servers.remote(asked.path["server"])
    return await asked.service.servers.pin_of(asked.path["server"])


async def pin(asked: ApiRequest) -> Pin:
    """Take a server's tools as they are now, whatever they are."""
    return await asked.service.servers.pin(asked.path["server"], by=asked.principal)


async def diff(asked: ApiRequest) -> ServerDiff:
    """Show what changed in a server's tools since they were pinned, with the digest that an approval brings back."""
    return await asked.service.servers.diff(asked.path["server"])


async def approve(asked: ApiRequest) -> Pin:
    """Take the changes that were shown."""
    body: ApproveBody = asked.body
    return await asked.service.servers.approve(asked.path["server"], body.digest, by=asked.principal)


_ONE: Final = "/v1/mcp/servers/{server}"
_ASKED: Final = (Code.UNKNOWN_TOOL, Code.TOOL_UNAVAILABLE)

ROUTES: Final = (
    Route(
        method="GET",
        path="/v1/mcp/servers",
        name="servers.page",
        scope="read",
        summary="List MCP servers.",
        handler=page,
        answer=list[ServerEntry],
    ),
    Route(
        method="POST",
        path=f"{_ONE}/connect",
        name="servers.status",
        scope="admin",
        summary="Connect to an MCP server.",
        handler=status,
        answer=RemoteStatus,
        codes=_ASKED,
    ),
    Route(
        method="GET",
        path=f"{_ONE}/pin",
        name="servers.pinned",
        scope="read",
        summary="Show what is pinned of an MCP server.",
        handler=pinned,
        answer=Pin | None,
        codes=(Code.UNKNOWN_TOOL,),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/pin",
        name="servers.pin",
        scope="admin",
        summary="Pin an MCP server's tools as they are.",
        handler=pin,
        answer=Pin,
        codes=(*_ASKED, Code.APPEND_CONFLICT),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/diff",
        name="servers.diff",
        scope="admin",
        summary="Show what changed since the pin.",
        handler=diff,
        answer=ServerDiff,
        codes=(*_ASKED, Code.STREAM_NOT_FOUND),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/approve",
        name="servers.approve",
        scope="admin",
        summary="Take the changes that were shown.",
        handler=approve,
        body=ApproveBody,
        answer=Pin,
        codes=(*_ASKED, Code.CONFIRMATION_MISMATCH, Code.APPEND_CONFLICT),
        example={"digest": "sha256:…"},
    ),
)
