"""Every declared operation has a route, a twin and a call that works; every scope of the table is enforced."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, get_type_hints

import msgspec
import pytest

from remit import Remit
from remit.api.derived import route_of
from remit.api.routes import ROUTES
from remit.client.connection import Connection
from remit.client.service import service_at
from remit.http.access import SCOPES
from remit.operation import Operation, operations
from remit.service.service import Service
from tests.api.conftest import Served, bearer, token
from tests.opened import OpenRemit

pytestmark = pytest.mark.slow

BY_NAME: Final = {route.name: route for route in ROUTES}
DECLARED: Final = [(noun, one) for noun, kind in get_type_hints(Service).items() for one in operations(kind)]
Prepared = tuple[list[str], Any]
"""What stands in the braces of the path, and the body."""
EVENT: Final = {"type": "message", "thread_id": "t1", "content": "hello"}


async def ticket(remit: Remit) -> str:
    return (await remit.service.tickets.create({"type": "TRIAGE", "event": EVENT})).id


async def of_ticket(remit: Remit, operation: Operation) -> Prepared:
    return [await ticket(remit)], operation.declaration.example


async def of_leased(remit: Remit, operation: Operation) -> Prepared:
    leased = await remit.service.tickets.lease_by_id(await ticket(remit), owner="me")
    given = {"lease_owner": "me", "lease_token": leased.lease_token, "code": "X", "reason": "why"}
    return [leased.ticket.id], {name: given[name] for name in operation.shape.__struct_fields__ if name in given}


async def of_blocked(remit: Remit, _: Operation) -> Prepared:
    name = await ticket(remit)
    await remit.service.tickets.block(name, code="X", reason="why", source="me")
    return [name], None


async def of_nothing(_: Remit, operation: Operation) -> Prepared:
    return [], operation.declaration.example


CALLS: Final[dict[str, Callable[[Remit, Operation], Awaitable[Prepared]]]] = {
    "tickets.view": of_ticket,
    "tickets.report": of_ticket,
    "tickets.create": of_nothing,
    "tickets.lease": of_nothing,
    "tickets.lease_one": of_ticket,
    "tickets.renew": of_leased,
    "tickets.release": of_leased,
    "tickets.fill": of_ticket,
    "tickets.fail": of_leased,
    "tickets.block": of_ticket,
    "tickets.retry": of_blocked,
}
"""What each operation is called with."""


def test_no_name_and_no_place_is_taken_twice() -> None:
    assert len(BY_NAME) == len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)


@pytest.mark.parametrize(("noun", "operation"), DECLARED, ids=[one.declaration.name for _, one in DECLARED])
def test_an_operation_has_its_route_and_its_twin(noun: str, operation: Operation) -> None:
    declared = operation.declaration
    made, route = route_of(noun, operation), BY_NAME[declared.name]
    assert [getattr(made, name) for name in ("method", "path", "scope", "codes", "status", "answer")] == [
        getattr(route, name) for name in ("method", "path", "scope", "codes", "status", "answer")
    ]
    method = getattr(type(getattr(service_at(Connection("http://127.0.0.1:1")), noun)), operation.function.__name__)
    assert method is not operation.function
    assert method.__doc__


@pytest.mark.parametrize("operation", [one for _, one in DECLARED], ids=lambda one: one.declaration.name)
async def test_an_operation_works_over_http(remit_in: OpenRemit, served: Served, operation: Operation) -> None:
    declared = operation.declaration
    async with remit_in(work=True) as remit, served(remit) as client:
        path, body = await CALLS[declared.name](remit, operation)
        route, names = BY_NAME[declared.name], iter(path)
        filled = "/".join(next(names) if part.startswith("{") else part for part in route.path.split("/"))
        sent = None if body is msgspec.UNSET else body
        answer = await client.ask(route.method, filled, sent)
        assert answer.status == route.status, answer.json
        if route.answer is not None:
            msgspec.convert(answer.json, route.answer)


async def test_a_token_without_the_scope_of_a_route_is_refused(remit_in: OpenRemit, served: Served) -> None:
    scopes = sorted(SCOPES - {"admin"})
    tokens = [token(f"without-{scope}", *(SCOPES - {scope, "admin"})) for scope in (*scopes, "admin")]
    async with remit_in() as remit, served(remit, tokens) as client:
        for route in ROUTES:
            if route.scope is not None:
                path = "/".join("x" if part.startswith("{") else part for part in route.path.split("/"))
                answer = await client.ask(route.method, path, headers=bearer(f"without-{route.scope}"))
                assert (answer.status, answer.json["error_code"]) == (403, "SCOPE_REQUIRED"), route.name
