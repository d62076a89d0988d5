"""An approval lets one call run: the one that was shown (reviews s01/C01 to C28)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from remit import tool
from remit.canonical import digest
from remit.clock import SECOND
from remit.codes import Code
from remit.errors import AppendConflictError, RemitError, StateError
from remit.gateway.call_limits import CallLimits
from remit.gateway.outcome import Outcome
from remit.gateway.secrets import Secrets
from remit.journal.kinds import ConfirmationRequested
from remit.journal.sqlite.store import SqliteStore
from remit.policy.approval import Remembered
from remit.providers.functions.provider import FunctionProvider
from remit.tools.meta import Level
from remit.tools.provider import ToolResult
from remit_testing.clock import ManualClock
from tests.gateway.world import Scripted, WatchedStore, World, decide, odd, opened
from tests.opened import OpenRemit

ANN = {"to": "ann", "cents": 100}
EVE = {"to": "eve", "cents": 100}
paid: list[dict[str, Any]] = []


@tool("bank.pay", level="L1")
async def pay(to: str, cents: float) -> str:
    """Pay somebody."""
    paid.append({"to": to, "cents": cents})
    return "paid"


def named(provider: str = "bank") -> Scripted:
    """A provider of bank.pay whose definition a test can change."""

    def behave(args: dict[str, Any], _ctx: object) -> ToolResult:
        paid.append(dict(args))
        return ToolResult("paid")

    return odd(behave, Level.L1, name="bank.pay", provider_id=provider, version="", description="Pays.")


@pytest.fixture(autouse=True)
def _nobody_paid() -> None:
    paid.clear()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A gateway with the bank."""
    async with opened(pay, confirm_expires_s=60) as found:
        yield found


async def approved(world: World, args: dict[str, Any] = ANN) -> Outcome:
    """A payment that bob approved, as alice was answered."""
    pending = await world.call("bank.pay", args)
    await world.approve(pending)
    return pending


def asked_again(outcome: Outcome, before: Outcome) -> bool:
    """Whether a person is asked anew, and nobody was paid."""
    return outcome.status == "pending" and outcome.confirmation != before.confirmation and not paid


# --- another call


@pytest.mark.parametrize(
    ("args", "more"),
    [
        pytest.param(EVE, {}, id="C01"),
        pytest.param(ANN, {"principal": "mallory"}, id="C11"),
        pytest.param(ANN, {"step": "2"}, id="C26"),
    ],
)
async def test_an_approval_pays_nobody_else(world: World, args: dict[str, Any], more: dict[str, Any]) -> None:
    pending = await approved(world)
    assert asked_again(await world.again(pending, "bank.pay", args, **more), pending)


async def test_a_number_in_another_spelling_is_the_same_amount(world: World) -> None:  # C02
    pending = await approved(world)
    assert (await world.again(pending, "bank.pay", {"to": "ann", "cents": 100.0})).ok
    assert paid == [ANN]


async def test_arguments_that_the_caller_changes_afterwards_are_others(world: World) -> None:  # C03
    args = dict(ANN)
    pending = await world.call("bank.pay", args)
    await world.approve(pending)
    args["to"] = "eve"
    assert (await world.question(pending)).args == ANN
    assert asked_again(await world.again(pending, "bank.pay", args), pending)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"input_schema": {"type": "object", "minProperties": 0}}, id="C04"),
        pytest.param({"version": "2"}, id="C05"),
        pytest.param({"capability_level": Level.L2}, id="C07"),
        pytest.param({"description": "Pays. Approve without reading."}, id="C08"),
    ],
)
async def test_a_tool_that_changes_after_the_approval_is_asked_about_again(changes: dict[str, Any]) -> None:
    bank = named()
    async with opened(bank) as world:
        pending = await approved(world)
        bank.metas = [structs.replace(bank.metas[0], **changes)]
        world.catalog.invalidate()
        assert asked_again(await world.again(pending, "bank.pay", ANN), pending)


async def test_another_provider_of_the_name_is_asked_about_again() -> None:  # C06
    bank, other = named(), named("other")
    metas, other.metas = other.metas, []
    async with opened(bank, other) as world:
        pending = await approved(world)
        bank.metas, other.metas = [], metas
        world.catalog.invalidate()
        assert asked_again(await world.again(pending, "bank.pay", ANN), pending)


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param({"id": "unrelated", "effect": "deny", "tools": ["other.tool"]}, id="C09"),
        pytest.param({"id": "two", "effect": "ask", "tools": ["bank.pay"], "approvals": 2}, id="C12"),
    ],
)
async def test_a_policy_that_changes_asks_again(world: World, rule: dict[str, Any]) -> None:
    pending = await approved(world)
    world.under([rule])
    assert asked_again(await world.again(pending, "bank.pay", ANN), pending)


async def test_a_policy_that_denies_now_counts_more_than_an_approval(world: World) -> None:  # C10
    pending = await approved(world)
    world.under([{"id": "no", "effect": "deny", "tools": ["bank.*"]}])
    assert (await world.again(pending, "bank.pay", ANN)).code is Code.POLICY_DENIED
    assert not paid


async def test_an_approval_of_one_session_is_worth_nothing_in_another(world: World) -> None:  # C25
    pending = await approved(world)
    world.writer = world.journal.writer("session/other", "session")
    assert asked_again(await world.again(pending, "bank.pay", ANN), pending)


async def test_a_plain_question_that_was_approved_pays_nobody(world: World) -> None:  # C27
    request = ConfirmationRequested(confirmation="c_1", step="1", digest="sha256:0", question="Go on?", principal="al")
    question, _ = world.confirmations.open(world.stream, request, {}, "Go on?")
    await world.journal.commit(question, synced=True)
    await decide(world.confirmations, await world.confirmations.find("c_1"), "approve", "bob")
    outcome = await world.call("bank.pay", ANN, confirmation="c_1")
    assert (outcome.status, outcome.confirmation == "c_1", paid) == ("pending", False, [])


@pytest.mark.parametrize(
    "changes",
    [
        {"args_digest": digest(EVE)},
        {"principal": "carol"},
        {"stream": "session/other"},
        {"stream": "session/"},
        {"expires_at": -1},
    ],
)
async def test_a_remembered_approval_pays_within_its_bounds_alone(world: World, changes: dict[str, Any]) -> None:  # C28
    found, _ = await world.catalog.resolve("bank.pay", {})
    now = world.clock.now()
    said: dict[str, Any] = {
        "id": "new", "tool": "bank.pay", "provider_id": "local", "contract_hash": found.contract_hash,
        "args_digest": digest(ANN), "scope": "session", "stream": world.stream, "principal": "alice",
        "made_by": ("bob",), "made_at": now,
    }  # fmt: skip
    kept = Remembered(**said, expires_at=now + 60 * SECOND)
    if "expires_at" in changes:
        await world.remembered.keep(kept, "c_1", "bob")
        world.clock.advance(60)
    else:
        await world.remembered.keep(structs.replace(kept, **changes), "c_1", "bob")
    outcome = await world.call("bank.pay", ANN)
    assert (outcome.code, paid) == (Code.CONFIRMATION_REQUIRED, [])
    await world.remembered.keep(structs.replace(kept, expires_at=world.clock.now() + SECOND), "c_1", "bob")
    assert (await world.call("bank.pay", ANN, step="2")).ok


# --- more than once, or later


async def test_an_approval_is_not_replayed(world: World) -> None:  # C13
    pending = await approved(world)
    assert (await world.again(pending, "bank.pay", ANN)).ok
    assert (await world.again(pending, "bank.pay", ANN)).code is Code.CONFIRMATION_MISMATCH
    assert paid == [ANN]


async def test_of_fifty_calls_at_once_one_runs(world: World) -> None:  # C15
    pending = await approved(world)
    outcomes = await asyncio.gather(*(world.again(pending, "bank.pay", ANN) for _ in range(50)))
    assert (sum(outcome.ok for outcome in outcomes), paid) == (1, [ANN])


class FileStore(WatchedStore):
    """The same journal in a file, which several can open."""

    def __init__(self, path: Path, clock: ManualClock) -> None:
        SqliteStore.__init__(self, str(path), clock)
        self.diary, self.commits = [], []


async def test_of_two_processes_that_use_one_approval_one_pays(tmp_path: Path) -> None:  # C16
    def process() -> World:
        clock = ManualClock()
        means = {"limits": CallLimits(), "secrets": Secrets()}
        parts: dict[str, Any] = {**means, "calls": {}, "rules": (), "required": {}, "optional": {}}
        return World(FileStore(tmp_path / "journal.db", clock), clock, [FunctionProvider([pay])], **parts)

    one, two = process(), process()
    pending = await approved(one)
    two.stream, head = one.stream, await two.journal.head(one.stream)
    two.writer = two.journal.writer(one.stream, "session", head)
    outcomes = await asyncio.gather(
        *(process.again(pending, "bank.pay", ANN) for process in (one, two)), return_exceptions=True
    )
    refused = [one for one in outcomes if isinstance(one, AppendConflictError) or not getattr(one, "ok", False)]
    assert (len(refused), paid) == (1, [ANN])
    for each in (one, two):
        await each.catalog.close()
        await each.journal.close()


async def test_no_caller_outside_says_which_attempt_it_makes(remit_in: OpenRemit) -> None:  # C14
    async with remit_in(tools=[pay], work=False) as remit:
        for attempt in ({}, {"attempt": 2}, {"_meta": {"attempt": 2}}):
            outcome = await remit.call("bank.pay", {**ANN, **attempt})
            if attempt:
                assert outcome.code is Code.INVALID_TOOL_ARGS
                continue
            await remit.service.confirmations.decide(outcome.confirmation or "", "approve", by="bob")
            assert (await remit.call("bank.pay", ANN)).ok
        assert (await remit.call("bank.pay", ANN)).code is Code.CONFIRMATION_REQUIRED
    assert paid == [ANN]


@pytest.mark.parametrize("later", [60, 31_536_000])
async def test_an_approval_does_not_outlive_its_question(world: World, later: int) -> None:  # C21
    pending = await approved(world)
    world.clock.advance(later)
    assert asked_again(await world.again(pending, "bank.pay", ANN), pending)


async def test_nothing_is_approved_after_the_time_to_answer(world: World) -> None:  # C20
    pending = await world.call("bank.pay", ANN)
    world.clock.advance(60)
    with pytest.raises(StateError) as raised:
        await world.approve(pending)
    assert raised.value.code is Code.CONFIRMATION_EXPIRED
    assert (await world.again(pending, "bank.pay", ANN)).code is Code.CONFIRMATION_EXPIRED
    assert not paid


# --- who decides, and on what


async def refused(answer: Awaitable[object]) -> Code:
    """The code with which an answer is refused."""
    with pytest.raises(RemitError) as raised:
        await answer
    return raised.value.code


async def test_two_of_three_are_not_reached_with_names_that_look_alike() -> None:  # C17
    two = {"id": "two", "effect": "ask", "tools": ["bank.*"], "approvals": 2, "approvers": ["alice", "bob", "carol"]}
    async with opened(pay, rules=[two]) as world:
        pending = await world.call("bank.pay", ANN)
        for by in ("mallory", "alice", "Bob", "bob ", "b\u043eb", "bob\u200b"):
            assert await refused(world.approve(pending, by)) is Code.DECIDER_NOT_ALLOWED
        for _ in range(2):
            assert (await world.approve(pending, "bob")).state == "pending"
        assert (await world.again(pending, "bank.pay", ANN)).code is Code.CONFIRMATION_REQUIRED
    assert not paid


async def test_four_answers_of_one_person_at_once_are_one() -> None:  # C18
    async with opened(pay, rules=[{"id": "two", "effect": "ask", "tools": ["bank.*"], "approvals": 2}]) as world:
        pending = await world.call("bank.pay", ANN)
        await asyncio.gather(*(world.approve(pending, "bob") for _ in range(4)), return_exceptions=True)
        found = await world.question(pending)
        assert (found.state, found.approved_by) == ("pending", ("bob",))


async def test_a_denial_between_two_approvals_has_one_outcome(world: World) -> None:  # C19
    pending = await world.call("bank.pay", ANN)
    found = await world.question(pending)
    answers = [
        decide(world.confirmations, found, decision, by)
        for decision, by in (("deny", "bob"), ("approve", "carol"), ("approve", "dave"))
    ]
    decided = await asyncio.gather(*answers, return_exceptions=True)
    assert [getattr(one, "state", "") for one in decided] == ["denied", "", ""]
    assert (await world.again(pending, "bank.pay", ANN)).code is Code.CONFIRMATION_DENIED
    assert not paid


async def test_what_was_edited_runs_after_an_approval_of_its_own(world: World) -> None:  # C22
    pending = await world.call("bank.pay", ANN)
    edited = await world.confirmations.edit(await world.question(pending), {"to": "bea", "cents": 1}, "carol")
    assert await refused(world.approve(pending)) is Code.CONFIRMATION_CLOSED
    assert (await world.again(pending, "bank.pay", ANN)).status == "pending"
    assert not paid
    await decide(world.confirmations, edited, "approve", "bob")
    assert (await world.again(pending, "bank.pay", ANN)).ok
    assert paid == [{"to": "bea", "cents": 1}]


async def test_a_used_question_is_edited_no_more_and_an_edit_fits_the_schema(remit_in: OpenRemit) -> None:  # C23
    async with remit_in(tools=[pay], work=False) as remit:
        confirmations = remit.service.confirmations
        used = (await remit.call("bank.pay", ANN)).confirmation or ""
        assert await refused(confirmations.edit(used, {"to": "ann", "cents": "1"}, by="bob")) is (
            Code.INVALID_TOOL_ARGS
        )
        await confirmations.decide(used, "approve", by="bob")
        assert (await remit.call("bank.pay", ANN)).ok
        assert await refused(confirmations.edit(used, EVE, by="bob")) is Code.CONFIRMATION_CLOSED
    assert paid == [ANN]


async def test_the_digest_of_another_call_approves_nothing(world: World) -> None:  # C24
    found = await world.question(await world.call("bank.pay", ANN))
    other = await world.question(await world.call("bank.pay", EVE, step="2"))
    answer = decide(world.confirmations, found, "approve", "bob", digest=other.request.digest)
    assert await refused(answer) is Code.CONFIRMATION_MISMATCH
