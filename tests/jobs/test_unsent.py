"""Calls that certainly did not reach their provider: anybody may make them again, whatever the tool declares."""

from __future__ import annotations

from typing import Any

import pytest

from remit import CallContext, Code, JobEndedError, Retry, Run, recipe, tool
from remit.errors import ProviderError
from tests.opened import OpenRemit

ALLOW = {"policy.rules": [{"effect": "allow", "tools": ["*"]}]}


class Gone:
    """A tool that changes something, must not be repeated, and is not there for its first calls."""

    def __init__(self, times: int, cause: Code) -> None:
        self.calls: list[str] = []

        @tool("bank.charge", level="L1", retry=Retry(first_delay_ms=1))
        async def charge(ctx: CallContext) -> str:
            self.calls.append(ctx.idempotency_key)
            if len(self.calls) <= times:
                raise ProviderError("the server has gone", cause=cause)
            return "charged"

        self.tool = charge


@recipe("pay")
async def pay(run: Run) -> Any:
    """Charge."""
    return (await run.call("bank.charge")).value


@pytest.mark.parametrize("cause", [Code.ProviderClosed, Code.SpawnFailed])
async def test_a_call_that_was_not_sent_is_made_again(remit_in: OpenRemit, cause: Code) -> None:
    bank = Gone(2, cause)
    async with remit_in(tools=[bank.tool], recipes=[pay], flags=ALLOW) as remit:
        job = await remit.start(pay())
        assert await job == "charged"
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"
    assert len(bank.calls) == 3
    assert len(set(bank.calls)) == 1


async def test_it_is_given_up_after_three_attempts(remit_in: OpenRemit) -> None:
    bank = Gone(9, Code.ProviderClosed)
    async with remit_in(tools=[bank.tool], recipes=[pay], flags=ALLOW) as remit:
        with pytest.raises(JobEndedError) as raised:
            await (await remit.start(pay()))
    assert raised.value.code is Code.TOOL_UNAVAILABLE
    assert len(bank.calls) == 3


async def test_an_execution_that_comes_after_makes_it_again_too(remit_in: OpenRemit) -> None:
    bank = Gone(1, Code.ProviderClosed)
    async with remit_in(tools=[bank.tool], recipes=[pay], flags=ALLOW, always_replay=True) as remit:
        assert await (await remit.start(pay())) == "charged"
    assert len(bank.calls) == 2
