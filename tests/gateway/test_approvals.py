"""Remembered approvals in the journal."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from remit.canonical import digest
from remit.clock import SECOND
from remit.codes import Code
from remit.errors import NotFoundError
from remit.gateway import approvals
from remit.journal.event import HeadPatch
from remit.journal.kinds import ApprovalRemembered, ApprovalRevoked
from remit.policy.approval import Remembered
from tests.gateway.world import World, opened


def approval(world: World, **changes: Any) -> Remembered:
    said: dict[str, Any] = {
        "id": "new",
        "tool": "note.write",
        "provider_id": "local",
        "contract_hash": digest("contract"),
        "args_digest": None,
        "scope": "everything",
        "stream": "",
        "principal": "alice",
        "made_by": ("bob",),
        "made_at": world.clock.now(),
        "expires_at": world.clock.now() + 60 * SECOND,
    }
    return Remembered(**(said | changes))


async def test_what_is_kept_is_active_under_an_identifier_of_its_own() -> None:
    async with opened() as world:
        rule = await world.remembered.keep(approval(world), "c_1", "bob")
        assert rule.id != "new"
        assert await world.remembered.active() == [rule]
        event = await world.last(ApprovalRemembered, f"approval/{rule.id}")
        assert (event.confirmation, event.by) == ("c_1", "bob")


async def test_another_process_finds_it_too() -> None:
    async with opened() as world:
        rule = await world.remembered.keep(approval(world), "c_1", "bob")
        assert await approvals.RememberedApprovals(world.journal, world.confirmations).active("note.write") == [rule]


async def test_only_those_of_the_tool_are_looked_at() -> None:
    async with opened() as world:
        note = await world.remembered.keep(approval(world), "c_1", "bob")
        mail = await world.remembered.keep(approval(world, tool="mail.send"), "c_2", "bob")
        assert await world.remembered.active("mail.send") == [mail]
        assert await world.remembered.active() == [mail, note]


async def test_it_ends_with_its_time() -> None:
    async with opened() as world:
        await world.remembered.keep(approval(world), "c_1", "bob")
        world.clock.advance(59)
        assert await world.remembered.active()
        world.clock.advance(1)
        assert await world.remembered.active() == []


async def test_it_ends_when_it_is_revoked_and_only_once() -> None:
    async with opened() as world:
        rule = await world.remembered.keep(approval(world), "c_1", "bob")
        await world.remembered.revoke(rule.id, "carol", "no more")
        assert await world.remembered.active() == []
        assert await world.last(ApprovalRevoked, f"approval/{rule.id}") == ApprovalRevoked(by="carol", reason="no more")
        with pytest.raises(NotFoundError) as raised:
            await world.remembered.revoke(rule.id, "carol")
        assert raised.value.code is Code.STREAM_NOT_FOUND


async def test_of_two_who_revoke_at_once_the_later_is_told_that_none_is_active(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened() as world:
        rule = await world.remembered.keep(approval(world), "c_1", "bob")
        head = await world.journal.head(f"approval/{rule.id}")
        await world.remembered.revoke(rule.id, "bob")

        async def stale(_stream: str) -> Any:
            return head

        monkeypatch.setattr(world.journal, "head", stale)  # read just before somebody revoked it
        with pytest.raises(NotFoundError):
            await world.remembered.revoke(rule.id, "carol")


async def test_an_unknown_one_cannot_be_revoked() -> None:
    async with opened() as world:
        with pytest.raises(NotFoundError, match="no remembered approval 'rule_none' is active"):
            await world.remembered.revoke("rule_none", "bob")


async def test_one_that_cannot_be_understood_approves_nothing_and_stops_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with opened() as world:
        rule = await world.remembered.keep(approval(world), "c_1", "bob")
        newer = ApprovalRemembered(rule={"id": "x", "tool": "note.write", "from_the": "future"})
        patch = HeadPatch(state="active", labels={"tool": "note.write"})
        await world.journal.create("approval/rule_x", "approval", newer, patch=patch)
        with caplog.at_level(logging.WARNING, "remit.gateway"):
            assert await world.remembered.active("note.write") == [rule]
        assert "approval/rule_x is left out" in caplog.text


async def test_all_are_found_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remit.journal.scan._HEADS", 2)
    async with opened() as world:
        kept = [await world.remembered.keep(approval(world), "c_1", "bob") for _ in range(5)]
        assert await world.remembered.active("note.write") == kept[::-1]
