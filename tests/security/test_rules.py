"""Rules that are talked around: other arguments (reviews s02/P10), sums, earlier results, the last one twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from remit import Remit, tool
from remit.codes import Code
from remit.gateway.outcome import Outcome
from tests.jumping import clock_at_noon
from tests.opened import OpenRemit

sent: list[dict[str, Any]] = []


@pytest.fixture(autouse=True)
def _nothing_sent() -> None:
    sent.clear()


@tool("mail.send", level="L1")
async def send(to: str, body: str, cc: str | None = None) -> str:
    """Send a mail."""
    sent.append({"to": to, "cc": cc})
    return body


@tool("shop.credit", level="L1")
async def credit(user: str, amount: float) -> str:
    """Give credit."""
    sent.append({"user": user, "amount": amount})
    return "given"


@tool("shop.get_order", level="L0")
async def get_order(order: str) -> dict[str, str]:
    """Show an order."""
    return {"order": order, "status": "pending" if order == "mine" else "sent"}


@tool("shop.cancel", level="L1")
async def cancel(order: str) -> str:
    """Cancel an order."""
    sent.append({"order": order})
    return "cancelled"


TOOLS = (send, credit, get_order, cancel)


def with_rules(remit_in: OpenRemit, *rules: dict[str, Any]) -> Remit:
    return remit_in(tools=TOOLS, flags={"policy.rules": list(rules)}, clock=clock_at_noon())


async def called(remit: Remit, tool: str, **args: Any) -> Outcome:
    return await remit.call(tool, args)


async def test_another_argument_does_not_slip_past_a_rule_that_allows(remit_in: OpenRemit) -> None:  # P10
    bob = {"effect": "allow", "tools": ["mail.send"], "when": {"to": {"equals": "bob@acme.example"}}}
    async with with_rules(remit_in, {**bob, "only": ["to", "body"]}) as remit:
        assert (await called(remit, "mail.send", to="bob@acme.example", body="x")).ok
        copied = await called(remit, "mail.send", to="bob@acme.example", body="x", cc="eve@evil.example")
        assert (copied.status, copied.code) == ("pending", Code.CONFIRMATION_REQUIRED)
    assert sent == [{"to": "bob@acme.example", "cc": None}]


@pytest.mark.parametrize("amounts", [(60, -50, 60), (60, 0, 60), (60, 40.000001), (1e308,), (60, 60)])
async def test_no_amount_makes_room_in_a_sum(remit_in: OpenRemit, amounts: tuple[float, ...]) -> None:
    limit = {"per": "day", "by": "principal", "sum": "amount", "max": 100}
    async with with_rules(remit_in, {"effect": "allow", "tools": ["shop.credit"], "limit": limit}) as remit:
        for amount in amounts:
            await called(remit, "shop.credit", user="ann", amount=amount)
    given = [one["amount"] for one in sent]
    assert all(amount >= 0 for amount in given)
    assert sum(given) <= 100


async def test_two_processes_do_not_both_take_the_last_one(remit_in: OpenRemit) -> None:
    rules: list[dict[str, Any]] = [
        {"effect": "allow", "tools": ["shop.credit"]},
        {"id": "three", "effect": "deny", "tools": ["shop.credit"], "limit": {"per": "day", "calls": 3}},
    ]
    async with with_rules(remit_in, *rules) as one, with_rules(remit_in, *rules) as other:
        outcomes = await asyncio.gather(
            *(called((one, other)[number % 2], "shop.credit", user="ann", amount=number) for number in range(10))
        )
    assert sum(outcome.ok for outcome in outcomes) == len(sent) == 3
    assert {outcome.code for outcome in outcomes if not outcome.ok} == {Code.POLICY_DENIED}


async def test_the_result_about_one_order_says_nothing_of_another(remit_in: OpenRemit) -> None:
    where = 'seen("shop.get_order").status == "pending" and seen("shop.get_order").order == args.order'
    async with with_rules(remit_in, {"effect": "allow", "tools": ["shop.cancel"], "where": where}) as remit:
        assert (await called(remit, "shop.cancel", order="mine")).status == "pending"  # nothing is known yet
        await called(remit, "shop.get_order", order="mine")
        assert (await called(remit, "shop.cancel", order="other")).status == "pending"
        assert (await called(remit, "shop.cancel", order="MINE")).status == "pending"
        assert (await called(remit, "shop.cancel", order="mine")).ok
    assert sent == [{"order": "mine"}]


async def test_a_remembered_approval_does_not_answer_a_doubt(remit_in: OpenRemit) -> None:
    sensitive = {"id": "sent", "effect": "deny", "tools": ["shop.cancel"]}
    where = 'seen("shop.get_order").status == "sent"'
    async with with_rules(remit_in, {**sensitive, "where": where}) as remit:
        first = await called(remit, "shop.cancel", order="mine")
        asked = first.confirmation or ""
        await remit.service.confirmations.decide(asked, "approve", by="bob")
        kept = await remit.service.approvals.remember(asked, "everything", seconds=600, exact=False, by="bob")
        assert kept is not None
        assert kept.args_digest is None
        assert (await called(remit, "shop.cancel", order="other")).status == "pending"
