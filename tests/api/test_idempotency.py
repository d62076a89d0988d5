"""Requests that start something, repeated under the same key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from remit import Remit, Run, recipe
from remit.service.requests import Requests
from tests.api.conftest import Client, Served, bearer, token
from tests.opened import OpenRemit

pytestmark = pytest.mark.slow

EVENT = {"type": "message", "thread_id": "t1", "content": "hello"}
KEY = {"idempotency-key": "order-17"}


@recipe("greet")
async def greet(_run: Run, name: str) -> str:
    """Greet."""
    return f"Hello {name}"


STARTS = [
    ("/v1/jobs", {"recipe": "greet", "input": {"name": "x"}}),
    ("/events", EVENT),
    ("/v1/tickets", {"type": "TRIAGE", "event": EVENT}),
    ("/v1/triage/batch", {"events": [EVENT, EVENT]}),
]


async def started(remit: Remit) -> int:
    """How many jobs and tickets there are."""
    return len(await remit.service.jobs.rows(limit=100)) + len(await remit.service.tickets.page(limit=100))


@pytest.fixture
async def remit(remit_in: OpenRemit) -> AsyncIterator[Remit]:
    async with remit_in(recipes=[greet]) as one:
        yield one


@pytest.fixture
async def client(remit: Remit, served: Served) -> AsyncIterator[Client]:
    async with served(remit) as one:
        yield one


@pytest.mark.parametrize(("path", "body"), STARTS)
async def test_the_same_request_under_a_key_gets_the_first_answer(
    client: Client, remit: Remit, path: str, body: Any
) -> None:
    one = await client.post(path, body, headers=KEY)
    before = await started(remit)
    again = await client.post(path, body, headers=KEY)
    assert (again.status, again.body) == (one.status, one.body)
    assert one.status == 201
    assert await started(remit) == before


@pytest.mark.parametrize(("path", "body"), STARTS)
async def test_without_a_key_every_request_starts_anew(client: Client, remit: Remit, path: str, body: Any) -> None:
    await client.post(path, body)
    before = await started(remit)
    await client.post(path, body)
    assert await started(remit) == 2 * before


async def test_another_body_under_the_key_is_refused(client: Client, remit: Remit) -> None:
    await client.post("/events", EVENT, headers=KEY)
    other = await client.post("/events", {**EVENT, "content": "bye"}, headers=KEY)
    assert (other.status, other.json["error_code"]) == (422, "IDEMPOTENCY_MISMATCH")
    assert (await client.post("/v1/tickets", {"type": "TRIAGE", "event": EVENT}, headers=KEY)).status == 201
    assert await started(remit) == 2


async def test_a_refused_request_can_be_corrected_under_a_new_key(client: Client) -> None:
    assert (await client.post("/events", {"type": "message"}, headers=KEY)).status == 400
    assert (await client.post("/events", {"type": "message"}, headers=KEY)).status == 400
    assert (await client.post("/events", EVENT, headers={"idempotency-key": "order-18"})).status == 201


@pytest.mark.parametrize(("path", "body"), STARTS)
async def test_a_request_whose_answer_was_lost_meets_what_it_had_started(
    client: Client, remit: Remit, path: str, body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def crash(*_args: Any) -> None:
        raise ConnectionAbortedError

    with monkeypatch.context() as patched:
        patched.setattr(Requests, "answer", crash)
        assert (await client.post(path, body, headers=KEY)).status == 500
    before = await started(remit)
    again = await client.post(path, body, headers=KEY)
    assert again.status == 201
    assert await started(remit) == before


async def test_of_many_at_once_under_one_key_all_get_the_same(client: Client, remit: Remit) -> None:
    answers = await asyncio.gather(*(client.post("/events", EVENT, headers=KEY) for _ in range(20)))
    assert len({answer.body for answer in answers}) == 1
    assert await started(remit) == 1


async def test_a_key_belongs_to_its_principal(remit: Remit, served: Served) -> None:
    async with served(remit, [token("ann", "tickets"), token("bob", "tickets")]) as client:
        one = await client.post("/events", EVENT, headers={**KEY, **bearer("ann")})
        other = await client.post("/events", EVENT, headers={**KEY, **bearer("bob")})
        assert one.json["id"] != other.json["id"]
