"""Twenty threads on one ticket over HTTP: one lease, one completion, one reply."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from remit import Remit
from remit.parts.tickets.ticket import stream_of
from remit.parts.tickets.tickets import tickets_of
from tests.api.conftest import Client, Served
from tests.opened import OpenRemit
from tests.patience import PATIENCE_S

EVENT = {"type": "message", "thread_id": "t1", "content": "hello"}
STEPS = [{"tool_name": "fs_read", "args": {"path": "a.txt"}}]
THREADS = 20
Ask = Callable[[int], tuple[str, Any]]
"""Path and body of a thread's request."""


@pytest.fixture
async def remit(remit_in: OpenRemit) -> AsyncIterator[Remit]:
    async with remit_in(flags={"tickets.derive_replies": True}) as one:
        yield one


@pytest.fixture
async def client(remit: Remit, served: Served) -> AsyncIterator[Client]:
    async with served(remit) as one:
        yield one


async def all_at_once(url: str, ask: Ask) -> list[tuple[int, Any]]:
    """The answers of as many threads, each with a connection of its own, that ask at the same moment."""
    start = threading.Barrier(THREADS)
    host = urlsplit(url).netloc

    def one(number: int) -> tuple[int, Any]:
        path, body = ask(number)
        connection = http.client.HTTPConnection(host, timeout=PATIENCE_S)
        connection.connect()
        start.wait()
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        with connection.getresponse() as response:
            answer = response.status, json.loads(response.read())
        connection.close()
        return answer

    answers: list[tuple[int, Any]] = [(0, None)] * THREADS

    def keep(number: int) -> None:
        answers[number] = one(number)

    threads = [threading.Thread(target=keep, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    return answers


async def the_ticket(remit: Remit) -> str:
    """A TOOL ticket."""
    triage = await tickets_of(remit.service).create({"type": "TRIAGE", "event": EVENT})
    filled = await tickets_of(remit.service).fill(triage.id, {"tool_steps": STEPS}, by="http_fill")
    assert filled.derived is not None
    return filled.derived.ticket


async def kinds(remit: Remit, ticket: str) -> Counter[str]:
    """What is recorded of a ticket."""
    return Counter(event.kind for event in await remit.runtime.journal.read(stream_of(ticket)))


@pytest.mark.parametrize("by", ["identifier", "kind"])
async def test_one_ticket_is_leased_filled_and_replied_to_once(remit: Remit, client: Client, by: str) -> None:
    ticket = await the_ticket(remit)

    def lease(number: int) -> tuple[str, Any]:
        owner = {"owner": f"thread-{number}"}
        if by == "kind":
            return "/v1/tickets/lease", {**owner, "kind": "TOOL"}
        return f"/v1/tickets/{ticket}/lease", owner

    answers = await all_at_once(client.url, lease)
    if by == "kind":
        assert {status for status, _ in answers} == {200}
        leases = [leased for _, found in answers for leased in found]
    else:
        assert Counter(status for status, _ in answers) == {200: 1, 409: THREADS - 1}
        assert {found["error_code"] for status, found in answers if status == 409} == {"lease_conflict"}
        leases = [leased for status, leased in answers if status == 200]
    (leased,) = leases
    proof = {name: leased[name] for name in ("lease_owner", "lease_token")}

    def fill(number: int) -> tuple[str, Any]:
        outputs = {"tool_context": {"logs_hits": [f"by {number}"]}, "tool_verdict": "PROCEED"}
        return f"/v1/tickets/{ticket}/fill", {"outputs": outputs, **proof}

    answers = await all_at_once(client.url, fill)
    assert {status for status, _ in answers} == {200}
    assert len({json.dumps(found["ticket"]["metadata"]["final_outputs"]) for _, found in answers}) == 1
    assert len({found["derived"]["ticket"] for _, found in answers}) == 1
    assert len(await tickets_of(remit.service).page(kind="REPLY")) == 1
    recorded = await kinds(remit, ticket)
    assert (recorded["ticket_leased"], recorded["ticket_completed"], recorded["ticket_derived"]) == (1, 1, 1)
