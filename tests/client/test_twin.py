"""Twins of nouns: what they send, and what they refuse without asking."""

from __future__ import annotations

from typing import Any

import pytest

from remit.client.connection import ServerConnection
from remit.client.twin import twin
from remit.codes import Code
from remit.errors import UsageError
from remit.journal.leases import LeaseProof
from remit.parts.tickets.remote import RemoteTickets
from remit.record.usage import Usage


class Recorded(ServerConnection):
    """Keeps what it is asked, and sends nothing."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1")
        self.asked: list[tuple[Any, ...]] = []

    async def ask(self, name: str, *path: str, body: Any = None, key: str = "", **more: Any) -> Any:
        text = bytes(body).decode() if body is not None else ""
        self.asked.append((name, *path, text, bool(key), more["repeatable"]))


@pytest.mark.parametrize(
    ("call", "asked"),
    [
        (lambda one: one.get("T"), ("tickets.view", "T", "", False, False)),
        (
            lambda one: one.release("T", LeaseProof(owner="o", token="t"), "why"),
            ("tickets.release", "T", '{"lease_owner":"o","lease_token":"t","reason":"why"}', False, False),
        ),
        (
            lambda one: one.fill("T", {"a": 1}, proof=LeaseProof(owner="o", token="t")),
            ("tickets.fill", "T", '{"outputs":{"a":1},"lease_owner":"o","lease_token":"t","by":""}', False, True),
        ),
        (
            lambda one: one.fill("T", {}, by="manual"),
            ("tickets.fill", "T", '{"outputs":{},"lease_owner":"","lease_token":"","by":"manual"}', False, False),
        ),
        (lambda one: one.create({"type": "X"}), ("tickets.create", '{"type":"X"}', False, False)),
    ],
)
async def test_a_call_becomes_the_request_of_its_operation(call: Any, asked: tuple[Any, ...]) -> None:
    connection = Recorded()
    tickets = RemoteTickets(connection)
    await call(tickets)
    assert connection.asked == [asked]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda one: one.retry("T", by="ann"), Code.LOCAL_ONLY),
        (lambda one: one.follow_up(), Code.LOCAL_ONLY),
        (lambda one: one.create(["no", "object"]), Code.SCHEMA_VALIDATION_FAILED),
        (lambda one: one.create({"not": object()}), Code.SCHEMA_VALIDATION_FAILED),
        (lambda one: one.block("T", code="X", reason="y", source="z", outputs={"not": object()}), Code.INVALID_INPUT),
    ],
)
async def test_what_a_server_cannot_take_is_refused_before_it_is_sent(call: Any, code: Code) -> None:
    connection = Recorded()
    with pytest.raises(UsageError) as refused:
        await call(RemoteTickets(connection))
    assert (refused.value.code, connection.asked) == (code, [])


async def test_a_noun_that_no_operation_is_declared_of_is_refused_as_a_whole() -> None:
    usage = twin(Usage, Recorded())
    methods = [name for name in vars(Usage) if not name.startswith("_")]
    assert methods
    for name in methods:
        with pytest.raises(UsageError) as refused:
            getattr(usage, name)()
        assert refused.value.code is Code.LOCAL_ONLY
