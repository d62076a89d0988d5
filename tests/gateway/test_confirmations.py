"""Questions to people: who may decide what, when, and what two of them do to each other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import AppendConflictError, NotCanonicalError, NotFoundError, RemitError, StateError, UsageError
from remit.gateway.confirmation import Confirmation, stream_of
from remit.gateway.confirmations import Confirmations
from remit.journal.kinds import ConfirmationDecided, ConfirmationRequested
from remit.journal.kinds.people import Via
from remit.journal.writer import Draft
from tests.gateway.samples import write
from tests.gateway.world import World, decide, opened

HELLO = {"text": "hello", "times": 1}


def ask(approvals: int = 1, **said: Any) -> dict[str, Any]:
    return {"id": "ask", "effect": "ask", "tools": ["note.*"], "approvals": approvals, **said}


async def question(world: World, step: str = "1") -> Confirmation:
    return await world.question(await world.call("note.write", HELLO, step=step))


# --- deciding


async def test_an_approval_is_recorded_with_who_gave_it_and_wakes_the_caller() -> None:
    async with opened(write) as world:
        found = await question(world)
        decided = await decide(world.confirmations, found, "approve", "bob", "fine by me")
        assert (decided.state, decided.approved_by, decided.head.closed) == ("approved", ("bob",), False)
        assert await world.last(ConfirmationDecided, found.stream) == ConfirmationDecided(
            confirmation=found.id, decision="approve", digest=found.request.digest, by="bob", reason="fine by me"
        )
        assert (await world.journal.wakes([world.stream]))[world.stream] == 1


async def test_an_approval_is_told_as_that_though_its_call_was_quick_to_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(write) as world:
        asked = await world.call("note.write", HELLO)
        found, commit = await world.question(asked), world.journal.commit

        async def used_at_once(*drafts: Draft, **more: Any) -> None:
            await commit(*drafts, **more)
            monkeypatch.undo()
            assert (await world.again(asked, "note.write", HELLO)).ok

        monkeypatch.setattr(world.journal, "commit", used_at_once)
        decided = await decide(world.confirmations, found, "approve", "bob")
        assert (decided.state, decided.approved_by) == ("approved", ("bob",))
        assert (await world.confirmations.find(found.id)).state == "used"
        assert not await world.confirmations.expire(decided), "whoever writes to it has to look again"


async def test_a_refusal_closes_the_question_and_wakes_the_caller() -> None:
    async with opened(write) as world:
        found = await question(world)
        decided = await decide(world.confirmations, found, "deny", "bob", "no\r\nsecret=hunter2hunter2")
        assert (decided.state, decided.head.closed, decided.approved_by) == ("denied", True, ())
        assert decided.last is not None
        assert decided.last.reason == "no  secret=********"
        assert (await world.journal.wakes([world.stream]))[world.stream] == 1


@pytest.mark.parametrize("by", ["", "bob"])
async def test_only_those_whom_the_rule_names_may_decide(by: str) -> None:
    async with opened(write, rules=[ask(approvers=["carol"])]) as world:
        found = await question(world)
        for decision in ("approve", "deny"):
            with pytest.raises(UsageError, match="carol") as raised:
                await decide(world.confirmations, found, decision, by)
            assert raised.value.code is Code.DECIDER_NOT_ALLOWED
        with pytest.raises(UsageError):
            await world.confirmations.edit(found, {"text": "x"}, by)
        assert (await decide(world.confirmations, found, "approve", "carol")).state == "approved"


class _People:
    """Everyone at a provider."""

    issuer = "https://idp.example"
    groups_now: frozenset[str] = frozenset()

    async def groups(self, _principal: str) -> frozenset[str]:
        return self.groups_now

    async def session(self, _secret: str, *, renews: bool = True) -> None:
        return None

    async def end(self, _secret: str) -> None:
        return None


async def test_a_group_of_the_provider_counts_as_it_is_at_the_decision_and_is_recorded() -> None:
    async with opened(write, rules=[ask(approvers=["@idp:payments"])]) as world:
        people, found = _People(), await question(world)
        confirmations = Confirmations(world.journal, people=lambda: people)
        for asked in (confirmations, world.confirmations):  # in no group, and where no one logs in
            with pytest.raises(UsageError, match="@idp:payments may") as raised:
                await decide(asked, found, "approve", "bob")
            assert raised.value.code is Code.DECIDER_NOT_ALLOWED
        people.groups_now = frozenset({"payments", "sales"})
        decided = await decide(confirmations, found, "approve", "bob")
        assert decided.state == "approved"
        assert decided.decisions[-1].via == Via(groups=("payments",))


async def test_nobody_decides_without_a_name() -> None:
    async with opened(write) as world:
        with pytest.raises(UsageError, match="nobody cannot decide") as raised:
            await decide(world.confirmations, await question(world), "approve", "")
        assert raised.value.remedy == "Say who decides."


async def test_n_of_m_counts_people_not_approvals_and_not_who_asked() -> None:
    async with opened(write, rules=[ask(2)]) as world:
        found = await question(world)
        for by in ("bob", "bob", "bob"):
            found = await decide(world.confirmations, found, "approve", by)
            assert found.state == "pending"
            assert (found.head.closed, found.head.due_at) == (False, found.request.expires_at)
        assert len(found.decisions) == 1, "the same approval stands once in the record"
        for decision in ("approve", "deny"):
            with pytest.raises(UsageError, match="alice requested this call") as raised:
                await decide(world.confirmations, found, decision, "alice")
            assert raised.value.code is Code.DECIDER_NOT_ALLOWED
        assert (await world.journal.wakes([world.stream]))[world.stream] == 0
        assert (await decide(world.confirmations, found, "approve", "carol")).approved_by == ("bob", "carol")
        assert (await world.journal.wakes([world.stream]))[world.stream] == 1


async def test_where_one_approval_is_enough_whoever_asked_may_give_it() -> None:
    async with opened(write) as world:
        assert (await decide(world.confirmations, await question(world), "approve", "alice")).state == "approved"


async def test_one_refusal_outweighs_all_approvals() -> None:
    async with opened(write, rules=[ask(2)]) as world:
        found = await question(world)
        found = await decide(world.confirmations, found, "approve", "bob")
        assert (await decide(world.confirmations, found, "deny", "bob")).state == "denied"


async def test_the_digest_that_was_shown_has_to_come_back() -> None:
    async with opened(write) as world:
        found = await question(world)
        other = await question(world, "2")
        for digest in ("sha256:" + "0" * 64, other.request.digest):
            with pytest.raises(StateError) as raised:
                await decide(world.confirmations, found, "approve", "bob", digest=digest)
            assert raised.value.code is Code.CONFIRMATION_MISMATCH
        assert (await world.confirmations.find(found.id)).state == "pending"


@pytest.mark.parametrize("decision", ["edit", "expire", "revoke"])
async def test_what_is_not_a_persons_decision_is_not_taken_for_one(decision: str) -> None:
    async with opened(write) as world:
        with pytest.raises(UsageError):
            await decide(world.confirmations, await question(world), decision, "bob")


@pytest.mark.parametrize("how", ["approve", "deny", "edit"])
async def test_nothing_is_decided_after_the_time_to_answer(how: str) -> None:
    async with opened(write, confirm_expires_s=60) as world:
        found = await question(world)
        world.clock.advance(60)
        assert await world.confirmations.pending() == []
        for code in (Code.CONFIRMATION_EXPIRED, Code.CONFIRMATION_CLOSED):
            with pytest.raises(StateError) as raised:
                await settle(world, await world.confirmations.find(found.id), how)
            assert raised.value.code is code
        assert (await world.confirmations.find(found.id)).state == "expired"


async def settle(world: World, found: Confirmation, how: str, by: str = "bob") -> Confirmation:
    if how == "edit":
        return await world.confirmations.edit(found, {"text": f"by {by}"}, by)
    if how == "use":
        await world.again(await world.call("note.write", HELLO, confirmation=found.id), "note.write", HELLO)
        return await world.confirmations.find(found.id)
    return await decide(world.confirmations, found, how, by)


@pytest.mark.parametrize("first", ["approve", "deny", "edit"])
@pytest.mark.parametrize("second", ["approve", "deny", "edit"])
async def test_a_closed_question_stays_as_it_was_decided(first: str, second: str) -> None:
    async with opened(write) as world:
        found = await question(world)
        await settle(world, found, first)
        state = (await world.confirmations.find(found.id)).state
        for seen in (found, await world.confirmations.find(found.id)):  # the one from before, and as it is now
            with pytest.raises(StateError) as raised:
                await settle(world, seen, second, "carol")
            assert raised.value.code is Code.CONFIRMATION_CLOSED
            assert ("remit confirm c_" in raised.value.remedy) is (first == "edit")
        assert (await world.confirmations.find(found.id)).state == state


@pytest.mark.parametrize(("one", "other"), [("approve", "deny"), ("deny", "approve"), ("edit", "approve")])
async def test_of_two_who_decide_at_once_one_is_told_that_it_is_closed(one: str, other: str) -> None:
    async with opened(write) as world:
        found = await question(world)
        both = await asyncio.gather(
            settle(world, found, one, "bob"), settle(world, found, other, "carol"), return_exceptions=True
        )
        errors = [each for each in both if isinstance(each, BaseException)]
        assert [error.code for error in errors if isinstance(error, RemitError)] == [Code.CONFIRMATION_CLOSED]
        assert len(await world.recorded(found.stream)) == 2


async def test_two_who_approve_at_once_both_count() -> None:
    async with opened(write, rules=[ask(2)]) as world:
        found = await question(world)
        await asyncio.gather(*(decide(world.confirmations, found, "approve", by) for by in ("bob", "carol")))
        again = await world.confirmations.find(found.id)
        assert (again.state, sorted(again.approved_by)) == ("approved", ["bob", "carol"])


# --- editing


async def test_an_edit_is_a_new_question_with_its_own_digest_and_needs_its_own_approval() -> None:
    async with opened(write, rules=[ask(2, approvers=["bob", "carol"])]) as world:
        found = await question(world)
        await decide(world.confirmations, found, "approve", "bob")
        edited = await world.confirmations.edit(
            await world.confirmations.find(found.id), {"text": "password=hunter2hunter2"}, "carol", "shorter"
        )
        assert (edited.state, edited.approved_by, edited.args) == ("pending", (), {"text": "password=hunter2hunter2"})
        assert edited.request.digest != found.request.digest
        assert (edited.request.edited_from, edited.request.approvals) == (found.id, 2)
        assert (edited.request.approvers, edited.request.expires_at) == (("bob", "carol"), found.request.expires_at)
        assert edited.head.title == 'note.write {"text":"password=********"}'
        before = await world.confirmations.find(found.id)
        assert before.last is not None
        assert (before.state, before.replaced_by, before.last.by) == ("replaced", edited.id, "carol")
        with pytest.raises(StateError) as raised:
            await decide(world.confirmations, edited, "approve", "bob", digest=found.request.digest)
        assert raised.value.code is Code.CONFIRMATION_MISMATCH
        assert (await world.journal.wakes([world.stream]))[world.stream] == 1


async def test_old_and_new_question_change_in_one_transaction() -> None:
    async with opened(write) as world:
        await world.confirmations.edit(await question(world), {"text": "x"}, "bob")
        commit = world.store.commit_of("confirmation_decided")
        assert [event.kind for append in commit.appends for event in append.events] == [
            "confirmation_decided",
            "confirmation_requested",
        ]


async def test_arguments_without_a_canonical_form_cannot_be_approved_so_they_are_no_edit() -> None:
    async with opened(write) as world:
        found = await question(world)
        with pytest.raises(NotCanonicalError):
            await world.confirmations.edit(found, {"text": float("nan")}, "bob")
        assert (await world.confirmations.find(found.id)).state == "pending"


async def test_an_edit_while_somebody_approves_edits_what_is_still_open() -> None:
    async with opened(write, rules=[ask(2)]) as world:
        found = await question(world)
        await decide(world.confirmations, found, "approve", "bob")
        edited = await world.confirmations.edit(found, {"text": "x"}, "carol")  # seen before bob approved
        assert (edited.state, (await world.confirmations.find(found.id)).approved_by) == ("pending", ("bob",))


# --- finding


async def test_a_question_is_found_by_its_identifier_or_an_ending_of_it() -> None:
    async with opened(write) as world:
        found = await question(world)
        assert (await world.confirmations.find(found.id)).id == found.id
        assert (await world.confirmations.find(found.id[-6:])).id == found.id
        await decide(world.confirmations, found, "deny", "bob")
        assert (await world.confirmations.find(found.id)).state == "denied"
        with pytest.raises(NotFoundError, match="is not the id of a confirmation"):
            await world.confirmations.find(found.id[-6:])


@pytest.mark.parametrize("reference", ["", "c_nobody"])
async def test_what_names_no_question_is_not_found(reference: str) -> None:
    async with opened(write) as world:
        await question(world)
        with pytest.raises(NotFoundError) as raised:
            await world.confirmations.find(reference)
        assert raised.value.code is Code.CONFIRMATION_NOT_FOUND


async def test_an_ending_of_several_is_not_enough() -> None:
    async with opened(write) as world:
        for end in ("ax", "bx"):
            request = ConfirmationRequested(confirmation=f"c_{end}", step="1", digest="d", tool_name="t")
            draft, _ = world.confirmations.open(world.stream, request, {}, "")
            await world.journal.commit(draft, synced=True)
        with pytest.raises(NotFoundError, match="fits several"):
            await world.confirmations.find("x")
        assert (await world.confirmations.find("ax")).id == "c_ax"


async def test_open_questions_are_listed_oldest_first_of_one_caller_or_all() -> None:
    async with opened(write) as world:
        first, second = await question(world, "1"), await question(world, "2")
        world.writer = world.journal.writer("session/other", "session")
        third = await question(world, "3")
        assert [found.id for found in await world.confirmations.pending()] == [first.id, second.id, third.id]
        assert [found.id for found in await world.confirmations.pending("session/other")] == [third.id]
        await decide(world.confirmations, second, "approve", "bob")
        assert [found.id for found in await world.confirmations.pending(world.stream)] == [first.id]


async def test_what_was_loaded_is_as_it_was_at_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(write, rules=[ask(2)]) as world:
        found = await question(world)
        head = await world.journal.head(found.stream)
        await decide(world.confirmations, found, "approve", "bob")

        async def stale(_stream: str) -> Any:
            return head

        monkeypatch.setattr(world.journal, "head", stale)  # read just before somebody approved
        loaded = await world.confirmations.load(found.stream)
        assert loaded is not None
        assert loaded.approved_by == ()


async def test_a_stream_without_a_question_is_no_confirmation() -> None:
    async with opened(write) as world:
        assert await world.confirmations.load("session/none") is None
        await world.call("nobody.knows")
        assert await world.confirmations.load(world.stream) is None
        assert await world.confirmations.newest(world.stream, "c_none") is None


async def test_large_arguments_are_shown_whole_to_whoever_decides() -> None:
    async with opened(write) as world:
        args = {"text": "x" * 50_000}
        assert (await world.question(await world.call("note.write", args))).args == args


# --- the caller's part


async def test_an_approval_is_claimed_by_one_call_at_a_time() -> None:
    async with opened(write) as world:
        found = await decide(world.confirmations, await question(world), "approve", "bob")
        assert world.confirmations.claim(found)
        assert not world.confirmations.claim(found)
        assert not await world.confirmations.withdraw(found, "not needed")
        world.confirmations.unclaim(found)
        assert await world.confirmations.withdraw(found, "not needed")
        assert (await world.confirmations.find(found.id)).state == "withdrawn"


async def test_who_comes_too_late_to_end_a_question_is_told() -> None:
    async with opened(write) as world:
        found = await question(world)
        await decide(world.confirmations, found, "deny", "bob")
        assert not await world.confirmations.expire(found)
        assert not await world.confirmations.withdraw(found, "not needed")
        assert (await world.confirmations.find(found.id)).state == "denied"


async def test_a_use_that_meets_another_writer_is_refused_by_the_journal() -> None:
    async with opened(write) as world:
        found = await decide(world.confirmations, await question(world), "approve", "bob")
        await world.journal.commit(world.confirmations.use(found, "inv_1"), synced=True)
        with pytest.raises(AppendConflictError):
            await world.journal.commit(world.confirmations.use(found, "inv_2"), synced=True)


def test_a_confirmation_shares_the_partition_of_its_caller() -> None:
    assert stream_of("job/J", "c_1") == "job/J/confirmation/c_1"


async def test_the_caller_and_the_time_to_answer_can_be_read_off() -> None:
    async with opened(write, confirm_expires_s=10) as world:
        found = await question(world)
        assert found.caller == world.stream
        now = world.clock.now()
        assert not found.lapsed(now + 10 * SECOND - 1)
        assert found.lapsed(now + 10 * SECOND)
        decided = await decide(world.confirmations, found, "approve", "bob")
        assert not decided.lapsed(now + 10 * SECOND)
