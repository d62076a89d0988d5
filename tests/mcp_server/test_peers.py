"""Calls that wait for their client to come again with answers."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from remit.mcp_server.peers import Parked


async def test_an_answer_that_comes_while_the_call_gives_up_asking_is_dropped() -> None:
    parked = Parked(cast("Any", None))
    parked.begin(parked.ask({"q": {"method": "elicitation/create"}}))
    assert await parked.step() is None
    assert list(parked.questions) == ["q"]
    parked.give_up()  # the wait is over, and the question not yet taken back
    parked.answered({"q": {"action": "accept"}})
    assert parked.work is not None
    with pytest.raises(asyncio.CancelledError):
        await parked.work
    assert parked.questions == {}
