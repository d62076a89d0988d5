"""Messages wait for who carries them: in order, and never without end."""

from __future__ import annotations

import asyncio

from remit.jsonrpc import message
from remit.jsonrpc.message import RpcMessage
from remit.mcp_server.exchange import MANY, TOO_MANY, Outbox
from tests.jsonrpc.pair import turns


def numbered(number: int) -> RpcMessage:
    return message.notification("n", {"number": number})


async def crowded() -> tuple[Outbox, asyncio.Task[None]]:
    """One with more than a client took, and somebody who waits for it to take more."""
    outbox = Outbox()
    outbox.listen()
    for number in range(MANY + 1):
        outbox.send(numbered(number))
    waiting = asyncio.create_task(outbox.drained())
    await turns()
    return outbox, waiting


async def test_what_nobody_hears_does_not_pile_up() -> None:
    outbox = Outbox()
    for number in range(MANY + 50):
        outbox.send(numbered(number))
        await outbox.drained()
    outbox.listen()
    kept = [outbox.take() for _ in range(MANY)]
    assert kept == [numbered(number) for number in range(50, MANY + 50)]
    assert outbox.take() is None


async def test_who_speaks_waits_for_a_client_that_is_slow() -> None:
    outbox, waiting = await crowded()
    assert not waiting.done()
    assert outbox.take() == numbered(0), "nothing is lost where somebody listens"
    assert outbox.take() == numbered(1)
    await waiting


async def test_of_what_a_client_never_reads_notifications_are_lost_and_answers_are_not() -> None:
    outbox = Outbox()
    outbox.listen()
    for number in range(TOO_MANY + 50):
        outbox.send(numbered(number))
    answer = message.result(1, {})
    outbox.send(answer)
    said = [outbox.take() for _ in range(TOO_MANY + 1)]
    assert said == [*map(numbered, range(TOO_MANY)), answer]
    assert outbox.take() is None


async def test_nobody_waits_for_a_client_that_left() -> None:
    outbox, waiting = await crowded()
    outbox.leave()
    await waiting
    assert not outbox.open


async def test_who_waits_hears_of_what_was_said_before() -> None:
    outbox = Outbox()
    outbox.send(numbered(1))
    await outbox.changed()
    waiting = asyncio.create_task(outbox.changed())
    await turns()
    assert not waiting.done()
    outbox.wake()
    await waiting
