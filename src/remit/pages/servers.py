"""MCP: the servers whose tools this process uses."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Final

import msgspec

from remit.codes import Code
from remit.errors import NotFoundError, StateError
from remit.pages.page import Nothing, Page, PageRequest, PageView, See, link
from remit.pages.tools import PATIENCE_S, ToolRow, line_of, seen
from remit.record.teller import words
from remit.service.mcp import ServerDiff, ServerRow
from remit.tools.remote import RemoteStatus

_PINS: Final = 20
_ANSWER_S: Final = 5.0
"""Seconds that a page waits for a server's own words."""
_TONES: Final = {"up": "quiet", "connecting": "busy", "failed": "bad", "off": "quiet"}


class Mcp(PageView, frozen=True, kw_only=True):
    """Every server."""

    template: ClassVar[str] = "servers.html"
    servers: tuple[ServerRow, ...]


class Pinned(msgspec.Struct, frozen=True, kw_only=True):
    """A pin, in the order in which they were made."""

    at: int
    words: str


class ServerPage(PageView, frozen=True, kw_only=True):
    """One server."""

    template: ClassVar[str] = "server.html"
    server: ServerRow
    tone: str
    answers: RemoteStatus | None
    """Its own description."""
    silent: str
    """Why it does not say anything."""
    diff: ServerDiff | None
    """The differences of its tools from their pin; None: that is not known, not for this reader, or it was never
    pinned.
    """
    lines: tuple[ToolRow, ...]
    pins: tuple[Pinned, ...]


class Approve(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that were shown, by their digest."""

    digest: str


async def mcp(request: PageRequest) -> Mcp:
    """Every server."""
    return Mcp(title="MCP", servers=tuple(await request.service.servers.rows(PATIENCE_S)))


async def server(request: PageRequest) -> ServerPage:
    """One server's page. Raises NotFoundError."""
    name, service = request.path["server"], request.service
    rows = await service.servers.rows(PATIENCE_S)
    row = next((candidate for candidate in rows if candidate.name == name), None)
    if row is None:
        reason = f"There is no MCP server {name!r:.80}."
        raise NotFoundError(reason, code=Code.UNKNOWN_TOOL, remedy="The page MCP lists them.")
    may = row.state == "up" and request.access.allows("admin")
    answers, diff, silent = await _asked(request, row) if may else (None, None, "")
    events = await service.streams.events(f"mcp/{name}")
    return ServerPage(
        title=name,
        server=row,
        tone=_TONES[row.state],
        answers=answers,
        silent=silent,
        diff=diff,
        lines=tuple(line_of(tool) for tool in await seen(request) if tool.provider_id == f"mcp_{name}"),
        pins=tuple(Pinned(at=event.at, words=words(event)) for event in reversed(events[-_PINS:])),
    )


async def moved(request: PageRequest) -> object:
    """Return what stays equal while the server, its tools and its pin do: it is not asked again for other news."""
    name, service = request.path["server"], request.service
    rows = [row for row in await service.servers.rows(PATIENCE_S) if row.name == name]
    tools = [tool for tool in await seen(request) if tool.provider_id == f"mcp_{name}"]
    return rows, tools, len(await service.streams.events(f"mcp/{name}"))


async def approve(request: PageRequest) -> See:
    """Take the changes that were shown, and no others."""
    name = request.path["server"]
    await request.service.servers.approve(name, request.form.digest, by=request.principal)
    return See(link("/servers/{}", name))


async def pin(request: PageRequest) -> See:
    """Take the tools of a server that was never pinned as they are."""
    name = request.path["server"]
    if await request.service.servers.pin_of(name) is not None:
        reason = f"{name!r:.80} was pinned meanwhile."
        raise StateError(
            reason, code=Code.CONFIRMATION_MISMATCH, remedy="Look at what changed since, and approve that."
        )
    await request.service.servers.pin(name, by=request.principal)
    return See(link("/servers/{}", name))


async def _asked(request: PageRequest, row: ServerRow) -> tuple[RemoteStatus | None, ServerDiff | None, str]:
    """Return what the server says of itself, and how its tools differ; or why it says nothing."""
    servers = request.service.servers
    try:
        async with asyncio.timeout(_ANSWER_S):
            status = await servers.status(row.name)
            return status, await servers.diff(row.name) if row.pinned_at else None, ""
    except TimeoutError:
        return None, None, f"It did not answer within {_ANSWER_S:g} seconds."
    except StateError as error:
        return None, None, error.message


PAGES: Final = (
    Page(
        path="/servers",
        scope="read",
        handler=mcp,
        name="MCP",
        key="m",
        under="What may run?",
        about="servers whose tools are used here, and what changed of them",
        live="tools",
    ),
    Page(path="/servers/{server}", scope="read", handler=server, live="tools", mark=moved),
    Page(path="/servers/{server}/approve", scope="admin", handler=approve, form=Approve),
    Page(path="/servers/{server}/pin", scope="admin", handler=pin, form=Nothing),
)
