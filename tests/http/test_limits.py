"""Places for requests under way."""

from __future__ import annotations

import asyncio

import pytest

from remit.codes import Code
from remit.http.access import Strangers
from remit.http.problem import HttpProblem


class Held:
    """A request that holds a place."""

    def __init__(self, strangers: Strangers, address: str) -> None:
        self.begun = asyncio.Event()
        self.end = asyncio.Event()
        self.task = asyncio.create_task(self._hold(strangers, address))

    async def _hold(self, strangers: Strangers, address: str) -> Code | None:
        try:
            async with strangers.taken(address):
                self.begun.set()
                await self.end.wait()
        except HttpProblem as problem:
            return problem.code
        return None


async def held(strangers: Strangers, address: str) -> Held:
    request = Held(strangers, address)
    await request.begun.wait()
    return request


@pytest.mark.parametrize(
    ("greedy", "other"),
    [
        ("192.0.2.1", "192.0.2.2"),
        ("2001:db8:1::1", "2001:db8:2::1"),
        ("fe80::1%eth0", "2001:db8:2::1"),
        ("", "192.0.2.2"),
    ],
)
async def test_the_oldest_request_of_an_address_gives_its_place_and_others_keep_theirs(greedy: str, other: str) -> None:
    strangers = Strangers(2)
    modest = await held(strangers, other)
    requests = [await held(strangers, greedy) for _ in range(4)]
    assert await asyncio.gather(*(request.task for request in requests[:2])) == [Code.TOO_MANY_REQUESTS] * 2
    for request in (modest, *requests[2:]):
        assert not request.task.done()
        request.end.set()
    assert await asyncio.gather(*(request.task for request in (modest, *requests[2:]))) == [None] * 3
    assert strangers._taken == {}


async def test_addresses_of_one_network_are_one_client() -> None:
    strangers = Strangers(1)
    first = await held(strangers, "2001:db8:1::1")
    second = await held(strangers, "2001:db8:1::ffff")
    assert await first.task is Code.TOO_MANY_REQUESTS
    second.end.set()
    assert await second.task is None


async def test_a_time_out_of_its_own_stays_one() -> None:
    with pytest.raises(TimeoutError):
        async with Strangers(1).taken("192.0.2.1"):
            raise TimeoutError
