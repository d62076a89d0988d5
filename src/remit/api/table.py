"""Every route: those of declared operations, and those whose handler has a thought of its own.

Derives the routes of declared operations (`remit.operation`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.api.route import NO_BODY, ApiRequest, Empty, Handler, Route
from remit.api.routes import artifacts, confirmations, history, jobs, plans, server, tools
from remit.operation import ArgumentPlace, Operation, Parameter, operations
from remit.service.service import CORE
from remit.wiring.capabilities import FIRST_PARTY
from remit.wiring.parts import check_names, nouns_of, tuples_of

if TYPE_CHECKING:
    from remit.capability import Capability


Take = Callable[[ApiRequest, Any], Any]
"""Takes an argument of a request, beside its decoded query or body."""


def derived() -> Iterator[Route]:
    """Give the route of each operation of the core's nouns."""
    for noun, kind in CORE.items():
        for operation in operations(kind):
            yield route_of(noun, operation)


def route_of(noun: str, operation: Operation) -> Route:
    """Return the route of an operation of a noun, by its name in the service."""
    declared, key = operation.declaration, operation.key
    is_query = declared.method == "GET"
    return Route(
        method=declared.method,
        path=declared.path,
        name=declared.name,
        scope=declared.scope,
        summary=declared.summary,
        handler=_handler(noun, operation),
        query=operation.shape if is_query and operation.shape is not None else Empty,
        body=NO_BODY if is_query else operation.shape,
        optional=declared.body is not None and declared.body.optional,
        answer=operation.returns,
        status=declared.status,
        codes=declared.codes,
        starts=key is not None,
        ends=declared.ends,
        example=declared.example,
    )


def _handler(noun: str, operation: Operation) -> Handler:
    declared, method = operation.declaration, operation.function.__name__
    arguments = tuple(
        (parameter.name, _take(parameter))
        for parameter in operation.parameters
        if parameter.source is not ArgumentPlace.HERE
    )
    references = tuple(parameter.name for parameter in operation.parameters if parameter.wire.looked_up)
    values = attrgetter("query" if declared.method == "GET" else "body")

    async def handle(request: ApiRequest) -> Any:
        service, sent = request.service, values(request)
        taken = {name: take(request, sent) for name, take in arguments}
        for name in references:
            taken[name] = await service.jobs.find(taken[name])
        subject = getattr(service, noun)
        if declared.check is not None:
            await declared.check(subject, request.access, taken)
        value = await getattr(subject, method)(**taken)
        if declared.visible is not None:
            value = declared.visible(request.access, value)
        return value if declared.answer is None else declared.answer(value)

    handle.__doc__ = operation.description
    return handle


_BY_SOURCE: Final[dict[ArgumentPlace, Take]] = {
    ArgumentPlace.TOKEN: lambda request, _: request.principal,
    ArgumentPlace.PROOF: lambda request, _: "token" if request.principal else "",
    ArgumentPlace.BODY: lambda _, body: body,
}


def _take(parameter: Parameter) -> Take:
    sent = parameter.sent
    if parameter.source in _BY_SOURCE:
        return _BY_SOURCE[parameter.source]
    if parameter.source is ArgumentPlace.PATH:
        return lambda request, _: request.path[sent]
    if parameter.key is not None:
        prefix = parameter.key.prefix
        return lambda request, _: request.identifier(prefix)
    if parameter.struct is not None:
        return _struct(parameter, parameter.struct)
    get = attrgetter(sent)
    return lambda _, body: get(body)


def _struct(parameter: Parameter, struct: type[msgspec.Struct]) -> Take:
    """Take a struct whose fields stand among those of the body; None if all are empty and it may be left out."""
    wires = {} if parameter.flat is None else parameter.flat.fields
    names, is_optional = tuple(wires), parameter.is_optional
    sent = tuple(name for name, _ in wires.values())

    def take(_: ApiRequest, body: Any) -> Any:
        parts = [getattr(body, name) for name in sent]
        if is_optional and not any(parts):
            return None
        return struct(**dict(zip(names, parts, strict=True)))

    return take


_CORE: Final[tuple[Route, ...]] = (
    *server.ROUTES,
    *jobs.ROUTES,
    *history.ROUTES,
    *artifacts.ROUTES,
    *plans.ROUTES,
    *confirmations.ROUTES,
    *tools.ROUTES,
    *derived(),
)


def routes_of(parts: Iterable[Capability]) -> tuple[Route, ...]:
    """Return the routes of the core and of parts. One of a part that ships takes the place of the core's of its name.

    Raise UsageError (MODULE_UNLOADABLE) for a part of others whose operations are not named after it.
    """
    table = {route.name: route for route in _CORE}
    for part in parts:
        declared = (
            route_of(noun.name, operation) for noun, kind in nouns_of((part,)) for operation in operations(kind)
        )
        for route in (*tuples_of((part,), "routes"), *declared):
            if part not in FIRST_PARTY:
                check_names(part, f"the operation {route.name}", route.name, f"{part.name}.")
                check_names(part, f"the path {route.path}", route.path, f"/v1/{part.name}/")
            table[route.name] = route
    return tuple(table.values())


ROUTES: Final = routes_of(FIRST_PARTY)
"""Those of the core and of the parts that ship."""
