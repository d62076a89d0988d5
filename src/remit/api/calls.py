"""Calls a route by its name, with words of a command line, on a service of this process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_origin
from urllib.parse import urlencode

import msgspec

from remit.api.part import HttpSessions
from remit.api.route import ApiRequest, DetailedAnswer, Route, pairs_of
from remit.api.table import ROUTES, routes_of
from remit.codes import Code
from remit.errors import NotFoundError, UsageError
from remit.http.access import ANYBODY
from remit.http.trace_context import TraceContext
from remit.nearest import did_you_mean
from remit.operation import is_struct
from remit.wiring.capabilities import FIRST_PARTY

if TYPE_CHECKING:
    from remit.capability import Capability
    from remit.service.service import Service


def operations_of(parts: Iterable[Capability] = FIRST_PARTY) -> dict[str, Route]:
    """Return the routes that answer with JSON, once, by name: the core's and those of parts."""
    routes = routes_of(parts)
    return {route.name: route for route in routes if route.handler is not None and route.media == "application/json"}


class RequestValues(NamedTuple):
    """The values of a request, decoded."""

    path: tuple[str, ...]
    """In the order of the braces of the path."""
    query: Any
    body: Any


def operation_named(name: str, parts: Iterable[Capability] = FIRST_PARTY) -> Route:
    """Return an operation. Raise NotFoundError (PATH_UNKNOWN) that names close ones."""
    operations = operations_of(parts)
    route = operations.get(name)
    if route is None:
        hint = did_you_mean(name, operations, most=2) or "`remit api` lists them."
        raise NotFoundError(f"there is no operation {name!r:.80}", code=Code.PATH_UNKNOWN, remedy=hint)
    return route


def parameters_of(route: Route) -> tuple[str, ...]:
    """Return the names that a route takes: those of its path, its query and its body."""
    kinds = (route.query, route.body)
    fields = [each.encode_name for kind in kinds if is_struct(kind) for each in msgspec.structs.fields(kind)]
    return tuple(dict.fromkeys((*route.parameters, *fields)))


def values_of(route: Route, words: Iterable[tuple[str, str]]) -> RequestValues:
    """Tell names and texts apart by what the route takes. Raise UsageError or Problem for what does not fit.

    A text is a JSON value if it is one and its field takes other values than texts; a name that stands several times is
    a list.
    """
    known = _types(route.query), _types(route.body)
    path: dict[str, str] = {}
    query: list[tuple[str, str]] = []
    body: dict[str, Any] = {}
    for name, text in words:
        if name in route.parameters and name not in path:
            path[name] = text
        elif name in known[0]:
            query.append((name, text))
        elif name in known[1] or _takes_any(route):
            value = _value(text, known[1].get(name))
            body[name] = value if name not in body else [*_listed(body[name]), value]
        else:
            reason = f"{route.name} takes no {name!r:.80}"
            raise UsageError(reason, code=Code.INVALID_INPUT, remedy=f"It takes: {', '.join(parameters_of(route))}.")
    missing = [name for name in route.parameters if name not in path]
    if missing:
        raise UsageError(f"{route.name} needs {', '.join(missing)}", code=Code.INVALID_INPUT)
    try:
        decoded = msgspec.convert(body, route.body) if route.body is not None else None
    except msgspec.ValidationError as error:
        raise UsageError(f"{route.name}: {error}", code=Code.INVALID_INPUT) from error
    pairs = pairs_of(urlencode(query).encode(), route.query, "The query")
    return RequestValues(tuple(path[name] for name in route.parameters), pairs, decoded)


async def call(service: Service, route: Route, values: RequestValues) -> Any:
    """Return what the route answers, asked by the operator of this process. Raise RemitError or Problem."""
    sessions = HttpSessions(service)
    request = ApiRequest(
        service=service,
        path=dict(zip(route.parameters, values.path, strict=True)),
        query=values.query,
        body=values.body,
        access=ANYBODY,
        headers={},
        key="",
        trace=TraceContext.of(""),
        request="",
        stopping=asyncio.Event(),
        left=_stays,
        session=lambda: sessions.of(""),
        routes=ROUTES,
    )
    if route.handler is None:
        raise UsageError(f"{route.name} is a stream")
    answer = await route.handler(request)
    return answer.value if isinstance(answer, DetailedAnswer) else answer


async def _stays() -> None:
    """Wait for the end of a client that never leaves."""
    await asyncio.Event().wait()


def _types(kind: Any) -> dict[str, Any]:
    return {each.encode_name: each.type for each in msgspec.structs.fields(kind)} if is_struct(kind) else {}


def _takes_any(route: Route) -> bool:
    return route.body is not None and not is_struct(route.body)


def _value(text: str, kind: Any) -> Any:
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if bare is str or {*get_args(bare)} == {str, NoneType}:
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
