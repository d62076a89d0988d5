"""Authorize: what policy says of this call."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from remit.canonical import digest
from remit.clock import SECOND
from remit.codes import Code
from remit.journal.kinds import UNSET, GateRefused, ToolInvocationStarted
from remit.policy.approval import Remembered
from remit.policy.overlay import parse_overlay
from remit.tools.function import tool
from tests.gateway.samples import ALLOW, add, write
from tests.gateway.world import ALICE, World, opened

NO = {"id": "no-notes", "effect": "deny", "tools": ["note.*"], "reason": "Notes are closed."}
HELLO = {"text": "hello"}


async def test_reading_runs_and_the_default_that_let_it_stands_in_the_record() -> None:
    async with opened(add) as world:
        assert (await world.call("math.add", {"a": 1, "b": 2})).ok
        started = await world.last(ToolInvocationStarted)
        assert (started.rule_id, started.policy_hash) == ("default:L0", world.policy.hash)


async def test_a_rule_allows_what_would_be_asked() -> None:
    async with opened(write, rules=[ALLOW]) as world:
        assert (await world.call("note.write", HELLO)).ok
        assert (await world.last(ToolInvocationStarted)).rule_id == "writes-run"


async def test_a_denied_call_is_recorded_with_rule_and_policy(ran: list[object]) -> None:
    async with opened(write, rules=[ALLOW, NO]) as world:
        outcome = await world.call("note.write", HELLO)
        assert (outcome.status, outcome.code, outcome.reason) == ("blocked", Code.POLICY_DENIED, "Notes are closed.")
        assert "no-notes" in outcome.remedy
        (refusal,) = await world.recorded()
        assert isinstance(refusal, GateRefused)
        known, _ = await world.catalog.resolve("note.write", {})
        assert [msgspec.structs.replace(refusal, args=UNSET)] == [
            GateRefused(
                step="1",
                tool_name="note.write",
                code="POLICY_DENIED",
                reason="Notes are closed.",
                remedy=outcome.remedy,
                stage="authorize",
                arguments_hash=digest(HELLO),
                principal=ALICE,
                rule_id="no-notes",
                policy_hash=world.policy.hash,
                policy_kept=True,
                provider_id="local",
                capability_level=1,
                risk_level="write",
                side_effect="write",
                confirms=True,
                request_schema_hash=known.input.hash,
                contract_hash=known.contract_hash,
                prompt_hash=known.prompt_hash,
            )
        ]
        assert isinstance(refusal.args, msgspec.Raw)
        assert msgspec.json.decode(refusal.args) == HELLO
        assert not ran


async def test_a_denial_outlives_an_approval_and_takes_it_back(ran: list[object]) -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        await world.approve(pending)
        world.under([NO])
        assert (await world.again(pending, "note.write", HELLO)).code is Code.POLICY_DENIED
        assert (await world.question(pending)).state == "withdrawn"
        world.under([])
        asked_again = await world.again(pending, "note.write", HELLO)
        assert (asked_again.status, asked_again.confirmation == pending.confirmation) == ("pending", False)
        assert not ran


async def test_a_question_is_taken_back_when_the_call_is_denied_after_all() -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        world.under([NO])
        await world.again(pending, "note.write", HELLO)
        assert await world.confirmations.pending() == []


async def remember(world: World, **changes: Any) -> Remembered:
    tool, _ = await world.catalog.resolve("note.write", {})
    said: dict[str, Any] = {
        "id": "new",
        "tool": "note.write",
        "provider_id": "local",
        "contract_hash": tool.contract_hash,
        "args_digest": None,
        "scope": "session",
        "stream": world.stream,
        "principal": ALICE,
        "made_by": ("bob",),
        "made_at": world.clock.now(),
        "expires_at": world.clock.now() + 60 * SECOND,
        **changes,
    }
    return await world.remembered.keep(Remembered(**said), "c_1", "bob")


async def test_a_remembered_approval_answers_the_question_and_stands_in_the_record() -> None:
    async with opened(write) as world:
        rule = await remember(world)
        assert (await world.call("note.write", HELLO)).ok
        assert (await world.last(ToolInvocationStarted)).rule_id == f"remembered:{rule.id}"


async def test_a_remembered_approval_lifts_no_denial() -> None:
    async with opened(write, rules=[NO]) as world:
        await remember(world)
        assert (await world.call("note.write", HELLO)).code is Code.POLICY_DENIED


@pytest.mark.parametrize(
    "changes",
    [
        {"principal": "carol"},
        {"stream": "session/other"},
        {"args_digest": digest({"text": "bye"})},
        {"contract_hash": digest("an older contract")},
        {"tool": "note.set"},
        {"provider_id": "builtin"},
    ],
    ids=lambda changes: next(iter(changes)),
)
async def test_a_remembered_approval_covers_nothing_beyond_its_bounds(changes: dict[str, Any]) -> None:
    async with opened(write) as world:
        await remember(world, **changes)
        assert (await world.call("note.write", HELLO)).code is Code.CONFIRMATION_REQUIRED


async def test_a_remembered_approval_of_exact_arguments_covers_those() -> None:
    async with opened(write) as world:
        await remember(world, args_digest=digest(HELLO), scope="everything", stream="")
        assert (await world.call("note.write", HELLO)).ok
        assert (await world.call("note.write", {"text": "bye"}, step="2")).code is Code.CONFIRMATION_REQUIRED


async def test_a_remembered_approval_ends_with_its_time_or_when_it_is_revoked() -> None:
    async with opened(write) as world:
        await remember(world)
        rule = await remember(world, expires_at=world.clock.now() + 600 * SECOND)
        world.clock.advance(60)
        assert (await world.call("note.write", HELLO)).ok
        await world.remembered.revoke(rule.id, "bob")
        assert (await world.call("note.write", HELLO, step="2")).code is Code.CONFIRMATION_REQUIRED


async def test_a_question_that_was_remembered_meanwhile_leaves_the_inbox_when_the_call_runs() -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        await remember(world)
        assert (await world.again(pending, "note.write", HELLO)).ok
        assert (await world.question(pending)).state == "withdrawn"
        assert not (await world.last(ToolInvocationStarted)).confirmation


async def test_policy_sees_who_asks_from_where() -> None:
    only = {"id": "triage-only", "effect": "allow", "tools": ["note.write"], "callers": ["job:triage/alice"]}
    async with opened(write, rules=[only]) as world:
        assert (await world.call("note.write", HELLO)).status == "pending"
        assert (await world.call("note.write", HELLO, step="2", caller="job", recipe="other")).status == "pending"
        assert (await world.call("note.write", HELLO, step="3", caller="job", recipe="triage")).ok


async def test_an_overlay_of_the_request_restricts_it_and_its_hash_stands_in_every_record() -> None:
    overlay = parse_overlay("job", [{"id": "ask-first", "effect": "ask", "tools": ["note.write"]}], ["note.*"])
    async with opened(add, write, rules=[ALLOW]) as world:
        narrowed = world.policy.under((overlay,))
        refused = await world.call("math.add", {"a": 1, "b": 2}, overlays=(overlay,))
        assert refused.code is Code.POLICY_DENIED
        recorded = await world.last(GateRefused)
        assert (recorded.rule_id, recorded.policy_hash) == ("job:tools", narrowed.hash)
        pending = await world.call("note.write", HELLO, step="2", overlays=(overlay,))
        question = (await world.question(pending)).request
        assert (question.rule_id, question.policy_hash) == ("job:ask-first", narrowed.hash)
        await world.approve(pending)
        assert (await world.again(pending, "note.write", HELLO, step="2", overlays=(overlay,))).ok
        started = await world.last(ToolInvocationStarted)
        assert (started.policy_hash, narrowed.hash != world.policy.hash) == (narrowed.hash, True)


async def test_an_approval_under_one_overlay_does_not_count_under_another() -> None:
    strict = parse_overlay("job", [{"effect": "ask", "tools": ["note.write"]}])
    other = parse_overlay("job", [{"effect": "ask", "tools": ["note.*"]}])
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO, overlays=(strict,))
        await world.approve(pending)
        again = await world.again(pending, "note.write", HELLO, overlays=(other,))
        assert (again.status, again.confirmation == pending.confirmation) == ("pending", False)


async def test_an_overlay_never_keeps_a_question_open_for_longer() -> None:
    overlay = parse_overlay("job", [{"effect": "ask", "tools": ["note.write"], "expires": "30d"}])
    async with opened(write, confirm_expires_s=60) as world:
        pending = await world.call("note.write", HELLO, overlays=(overlay,))
        assert (await world.question(pending)).request.expires_at == world.clock.now() + 60 * SECOND


@tool("box.run", level="L2")
async def bare(code: str) -> str:
    """Run code here."""
    return code


@tool("box.meant", level="L2", unprotected=True)
async def meant(code: str) -> str:
    """Run code here, on purpose."""
    return code


async def test_a_function_that_executes_in_this_process_is_refused_before_anybody_is_asked() -> None:
    async with opened(bare, rules=[ALLOW]) as world:
        outcome = await world.call("box.run", {"code": "1"})
        assert (outcome.status, outcome.code) == ("blocked", Code.SANDBOX_REQUIRED)
        assert "unprotected=True" in outcome.remedy
        world.under([])
        assert (await world.call("box.run", {"code": "1"}, step="2")).code is Code.SANDBOX_REQUIRED


async def test_it_runs_where_its_declaration_or_the_settings_say_so() -> None:
    async with opened(meant, rules=[ALLOW]) as world:
        assert (await world.call("box.meant", {"code": "1"})).ok
    async with opened(bare, rules=[ALLOW], unprotected=("box.*",)) as world:
        assert (await world.call("box.run", {"code": "1"})).ok
