from __future__ import annotations

from typing import Any

import pytest

from remit import Run, recipe, tool
from remit.record.views import ConfirmationView
from remit.service.confirmations import QuestionFilter, answer_each, telling
from tests.opened import OpenRemit, until_waiting


@tool("desk.order")
def order(item: str) -> str:
    """Order."""
    return item


@recipe("orders")
async def orders(run: Run, item: str) -> Any:
    """Order something."""
    return (await run.call("desk.order", {"item": item})).value


def question(args: Any, **more: Any) -> ConfirmationView:
    given: dict[str, Any] = {
        "confirmation": "c_1", "state": "pending", "caller": "job/job_1", "step": "1", "tool": "desk.order",
        "question": "", "digest": "", "contract_hash": "", "principal": "ann", "approvals": 1, "approved_by": (),
        "approvers": (), "rule_id": "", "edited_from": "", "expires_at": None, "args": args,
    }  # fmt: skip
    return ConfirmationView(**{**given, **more})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([{"a": 1, "b": 2}], [{"a": 1, "b": 2}]),
        ([{"a": 1, "b": 2}, {"a": 1, "b": 3}], [{"b": 2}, {"b": 3}]),
        ([{"a": 1}, {"a": 1, "b": 3}], [{}, {"b": 3}]),
        ([{"a": 1, "b": None}, {"a": 1}], [{"b": None}, {}]),
        ([{"a": 1}, None], [{"a": 1}, None]),
        ([{"a": 1}, {"a": True}], [{"a": 1}, {"a": True}]),
        ([], []),
    ],
)
def test_questions_are_told_apart_by_the_arguments_that_differ(given: list[Any], told: list[Any]) -> None:
    assert telling([question(args) for args in given]) == told


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        ({}, True),
        ({"tool": "desk.order", "recipe": "orders", "labels": {"team": "a"}, "principal": "ann"}, True),
        ({"tool": "desk"}, False),
        ({"recipe": "other"}, False),
        ({"labels": {"team": "b"}}, False),
        ({"labels": {"team": "a", "other": "a"}}, False),
        ({"principal": "bob"}, False),
    ],
)
def test_every_condition_of_a_filter_has_to_hold(wanted: dict[str, Any], fits: bool) -> None:
    one = question({}, recipe="orders", labels={"team": "a"})
    assert QuestionFilter(**wanted).of([one]) == ([one] if fits else [])


async def test_each_answer_is_bound_to_its_digest_and_a_refusal_stops_no_other(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[order], recipes=[orders]) as remit:
        jobs = [await remit.start(orders(item=item)) for item in ("milk", "tea", "salt")]
        for job in jobs:
            await until_waiting(remit, job.id)
        confirmations = remit.service.confirmations
        pending = await confirmations.pending()
        assert {(one.recipe, one.title) for one in pending} == {
            ("orders", "milk"),
            ("orders", "tea"),
            ("orders", "salt"),
        }
        digests = [(one.confirmation, one.digest) for one in pending]
        digests[1] = digests[1][0], "sha256:" + "0" * 64
        answers = await answer_each(confirmations, [*digests, ("c_none", "")], "approve", by="ann")
        codes = [one.code for one in answers]
        assert codes == ["", "CONFIRMATION_MISMATCH", "", "CONFIRMATION_NOT_FOUND"]
        assert [one.confirmation for one in await confirmations.pending()] == [digests[1][0]]
