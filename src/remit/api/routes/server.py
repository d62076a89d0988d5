"""The server itself: is it there, is it ready, what it counts, and what it answers."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from remit.api.readiness import require_room
from remit.api.route import ApiRequest, DetailedAnswer, Route
from remit.codes import Code
from remit.http.problem import HttpProblem

_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
_NOT_READY: Final = 503


class Live(msgspec.Struct, frozen=True):
    """The process answers."""

    status: str = "live"


async def live(_request: ApiRequest) -> Live:
    """Say that the process answers; nothing else is looked at."""
    return Live()


async def ready(request: ApiRequest) -> DetailedAnswer:
    """Say whether work can be taken: the journal answers, every required dependency is there, and no stop was asked."""
    if request.service.health.stopping():
        raise HttpProblem(Code.SERVER_STOPPING)
    require_room(request.service.health)  # to look at the journal is to wait until all of it is written
    health = await request.service.health.ready()
    if health.missing_required:
        return DetailedAnswer(value=health.refusal(), status=_NOT_READY)
    return DetailedAnswer(value=msgspec.to_builtins(health))


async def metrics(request: ApiRequest) -> DetailedAnswer:
    """Show every counter and gauge in the text format of Prometheus."""
    from remit.api.exposition import exposed  # noqa: PLC0415 - an extra

    return DetailedAnswer(value=exposed(await request.service.health.metrics()), media=_TEXT)


async def document(request: ApiRequest) -> DetailedAnswer:
    """Show the OpenAPI 3.1 document of this server."""
    from remit.api.openapi import openapi  # noqa: PLC0415 - few ask for it

    return DetailedAnswer(value=openapi(request.routes))


ROUTES: Final = (
    Route(
        method="GET",
        path="/health/live",
        name="server.live",
        scope=None,
        summary="Is the process there?",
        handler=live,
        answer=Live,
    ),
    Route(
        method="GET",
        path="/health",
        name="server.ready",
        scope=None,
        summary="Can work be taken?",
        handler=ready,
        answer=dict[str, Any],
        also=(_NOT_READY,),
        codes=(Code.MCP_REQUIRED_UNAVAILABLE,),
    ),
    Route(
        method="GET",
        path="/metrics",
        name="server.metrics",
        scope="read",
        summary="Counters, for Prometheus.",
        handler=metrics,
        answer=str,
        media="text/plain",
    ),
    Route(
        method="GET",
        path="/openapi.json",
        name="server.openapi",
        scope=None,
        summary="This document.",
        handler=document,
        answer=dict[str, Any],
    ),
)
