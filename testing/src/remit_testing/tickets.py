"""The promises of tickets on every journal (contract: tickets, "States"), as checks that any test suite can run.

    @pytest.mark.parametrize("check", TICKET_CHECKS, ids=lambda check: check.__name__)
    async def test_contract(check):
        await check(MyStorage())

`MyStorage` is a storage of remit_testing.journal; each check begins with an empty one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import msgspec

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import RemitError
from remit.journal.event import LeaseClaim
from remit.journal.leases import LeaseProof, Owner
from remit.parts.tickets.store import TicketStore
from remit.parts.tickets.ticket import STREAM_KIND, Kind, Leased, NewTicket, Ticket, stream_of
from remit.randomness import SystemRandomSource
from remit_testing.clock import ManualClock
from remit_testing.journal.storage import Storage, opened
from remit_testing.suite import checks_in

Check = Callable[[Storage], Awaitable[None]]
_EVENT: Final = {"type": "message", "thread_id": "t1", "content": "hello", "actor": "ann", "timestamp": "now"}
_OUTPUTS: Final = {"tool_verdict": "PROCEED"}


class Desk:
    """A ticket store, and what it refused."""

    def __init__(self, store: TicketStore, clock: ManualClock, refused: list[tuple[str, str]]) -> None:
        self.store = store
        self.clock = clock
        self.refused = refused

    async def new(self, kind: Kind = "TOOL", **fields: Any) -> Ticket:
        """A pending ticket."""
        return await self.store.create(NewTicket(type=kind, event=fields.pop("event", _EVENT), **fields))

    async def leased(self, owner: str = "worker", kind: Kind = "TOOL", lease_sec: int = 300) -> Leased:
        """The oldest free ticket, leased."""
        (leased,) = await self.store.lease(kind, owner=owner, lease_sec=lease_sec)
        return leased


@asynccontextmanager
async def _desk(storage: Storage) -> AsyncIterator[Desk]:
    clock = ManualClock()
    refused: list[tuple[str, str]] = []
    async with opened(storage, clock) as journal:
        store = TicketStore(
            journal, SystemRandomSource(), rejected=lambda code, action: refused.append((code.name, action))
        )
        yield Desk(store, clock, refused)


@contextmanager
def _refused(code: Code) -> Iterator[None]:
    actual: Code | None = None
    try:
        yield
    except RemitError as error:
        actual = error.code
    assert actual is code, f"was refused with {actual}, not {code}" if actual else f"was not refused with {code}"


def _proof(leased: Leased) -> LeaseProof:
    return LeaseProof(owner=leased.lease_owner, token=leased.lease_token)


# --- create and look


async def check_a_new_ticket_is_pending_and_keeps_what_it_was_made_from(storage: Storage) -> None:
    """Its event and input come back as they were given, also larger than an event may be."""
    async with _desk(storage) as desk:
        event = {**_EVENT, "content": "x" * 20_000}
        created = await desk.new(
            event=event, tool_input={"tool_steps": [{"tool_name": "a"}]}, tool_steps=[{"server": "b"}]
        )
        ticket = await desk.store.get(created.id)
        assert ticket == created
        assert (ticket.status, ticket.type, ticket.metadata.kind, ticket.event) == ("pending", "TOOL", "TOOL", event)
        assert ticket.metadata.tool_input == {"tool_steps": [{"tool_name": "a"}]}
        assert ticket.tool_steps == [{"server": "b"}]


async def check_a_ticket_that_does_not_exist_is_not_found(storage: Storage) -> None:
    """Whatever is wanted of it."""
    async with _desk(storage) as desk:
        proof = LeaseProof(owner="worker", token=f"{1}.x")
        for wanted in (
            lambda: desk.store.get("tkt_none"),
            lambda: desk.store.lease_by_id("tkt_none", owner="worker"),
            lambda: desk.store.complete("tkt_none", {}, by="manual"),
            lambda: desk.store.fail("tkt_none", proof, code="X", reason="x"),
            lambda: desk.store.retry("tkt_none"),
        ):
            with _refused(Code.not_found):
                await wanted()


async def check_tickets_are_listed_newest_first_by_kind_state_and_thread(storage: Storage) -> None:
    """And page by page."""
    async with _desk(storage) as desk:
        tools = [await desk.new(event={**_EVENT, "thread_id": f"t{number % 2}"}) for number in range(4)]
        await desk.new("TRIAGE")
        done = await desk.store.complete(tools[0].id, _OUTPUTS, by="manual")
        first = await desk.store.page(kind="TOOL", limit=3)
        rest = await desk.store.page(kind="TOOL", limit=3, before=first[-1].id)
        assert [ticket.id for ticket in (*first, *rest)] == [ticket.id for ticket in reversed(tools)]
        assert await desk.store.page(kind="TOOL", states=("done",)) == [done]
        assert {ticket.id for ticket in await desk.store.page(kind="TOOL", thread="t1")} == {tools[1].id, tools[3].id}


# --- leases


async def check_the_oldest_ticket_of_the_kind_is_leased_first(storage: Storage) -> None:
    """Kinds do not mix."""
    async with _desk(storage) as desk:
        identifiers = []
        for number in range(4):
            identifiers.append((await desk.new("TOOL" if number else "TRIAGE")).id)
            desk.clock.advance(1)
        leased = await desk.store.lease("TOOL", owner="worker", limit=2)
        assert {lease.ticket.id for lease in leased} == set(identifiers[1:3])
        for row in leased:
            meta = row.ticket.metadata
            assert (row.ticket.status, meta.lease_owner, meta.lease_expires) == ("running", "worker", row.lease_expires)
        assert await desk.store.lease("REPLY", owner="worker") == []


async def check_of_many_who_lease_one_ticket_one_gets_it(storage: Storage) -> None:
    """By kind and by identifier at once."""
    async with _desk(storage) as desk:
        ticket = await desk.new()

        async def by_id(owner: str) -> list[Leased]:
            try:
                return [await desk.store.lease_by_id(ticket.id, owner=owner)]
            except RemitError as error:
                assert error.code is Code.lease_conflict  # noqa: PT017 - pytest is not needed to run this suite
                return []

        lists = await asyncio.gather(
            *(desk.store.lease("TOOL", owner=f"a{number}") for number in range(10)),
            *(by_id(f"b{number}") for number in range(10)),
        )
        assert sum(map(len, lists)) == 1


async def check_a_token_is_shown_to_its_holder_alone(storage: Storage) -> None:
    """Neither the ticket nor the journal holds it."""
    async with _desk(storage) as desk:
        await desk.new()
        leased = await desk.leased()
        secret = leased.lease_token.partition(".")[2]
        assert len(secret) >= 32
        assert secret not in msgspec.json.encode(await desk.store.get(leased.ticket.id)).decode()


async def check_a_lease_that_ran_out_counts_until_another_takes_the_ticket(storage: Storage) -> None:
    """Afterwards the former holder is refused, whatever it wants to write."""
    async with _desk(storage) as desk:
        await desk.new()
        await desk.new()
        late, lost = await desk.store.lease("TOOL", owner="slow", limit=2, lease_sec=10)
        desk.clock.advance(11)
        assert (await desk.store.complete(late.ticket.id, _OUTPUTS, proof=_proof(late))).status == "done"
        taken = await desk.leased("fast")
        assert taken.ticket.id == lost.ticket.id
        proof, store = _proof(lost), desk.store
        for write in (
            lambda: store.complete(lost.ticket.id, _OUTPUTS, proof=proof),
            lambda: store.fail(lost.ticket.id, proof, code="X", reason="x"),
            lambda: store.block(lost.ticket.id, code="X", reason="x", source="s", proof=proof),
            lambda: store.release(lost.ticket.id, proof),
            lambda: store.renew(lost.ticket.id, proof),
        ):
            with _refused(Code.lease_owner_mismatch):
                await write()
        assert len(desk.refused) == 5
        assert (await store.complete(lost.ticket.id, _OUTPUTS, proof=_proof(taken))).status == "done"


async def check_every_write_on_a_running_ticket_needs_the_proof(storage: Storage) -> None:
    """A wrong owner, a wrong token, none at all, and a token of another form."""
    async with _desk(storage) as desk:
        await desk.new()
        leased = await desk.leased()
        ticket, epoch = leased.ticket.id, leased.lease_token.partition(".")[0]
        wrong = [LeaseProof(owner="worker", token=token) for token in (f"{epoch}.guess", "nonsense", "٣.x", "")]
        for proof in (None, LeaseProof(owner="other", token=leased.lease_token), *wrong):
            with _refused(Code.lease_owner_mismatch):
                await desk.store.complete(ticket, _OUTPUTS, proof=proof, by="manual")
            with _refused(Code.lease_owner_mismatch):
                await desk.store.block(ticket, code="X", reason="x", source="s", proof=proof)
        assert (await desk.store.get(ticket)).status == "running"


# --- ends


async def check_a_released_ticket_is_pending_again(storage: Storage) -> None:
    """And the next worker gets it."""
    async with _desk(storage) as desk:
        await desk.new()
        leased = await desk.leased()
        released = await desk.store.release(leased.ticket.id, _proof(leased), "shutting down")
        assert (released.status, released.metadata.lease_owner) == ("pending", "")
        assert (await desk.leased("other")).ticket.id == leased.ticket.id


async def check_completing_is_idempotent_once_done(storage: Storage) -> None:
    """The first outputs stay; done is the end."""
    async with _desk(storage) as desk:
        await desk.new()
        leased = await desk.leased()
        done = await desk.store.complete(leased.ticket.id, _OUTPUTS, proof=_proof(leased))
        assert (done.status, done.metadata.final_outputs) == ("done", _OUTPUTS)
        assert await desk.store.complete(leased.ticket.id, {"other": 1}, proof=_proof(leased)) == done
        assert await desk.store.complete(leased.ticket.id, {"other": 1}, by="manual") == done
        for again in (
            lambda: desk.store.retry(leased.ticket.id),
            lambda: desk.store.lease_by_id(leased.ticket.id, owner="other"),
            lambda: desk.store.block(leased.ticket.id, code="X", reason="x", source="s"),
        ):
            with _refused(Code.lease_conflict):
                await again()


async def check_a_pending_ticket_is_filled_directly_by_those_who_may(storage: Storage) -> None:
    """`http_fill`, `system` and `manual`; others and the unnamed are refused."""
    async with _desk(storage) as desk:
        for by in ("http_fill", "system", "manual"):
            ticket = await desk.new()
            assert (await desk.store.complete(ticket.id, _OUTPUTS, by=by)).status == "done"
        ticket = await desk.new()
        with _refused(Code.direct_fill_missing_by):
            await desk.store.complete(ticket.id, _OUTPUTS)
        with _refused(Code.direct_fill_not_allowed):
            await desk.store.complete(ticket.id, _OUTPUTS, by="somebody")
        assert desk.refused == [("direct_fill_missing_by", "complete"), ("direct_fill_not_allowed", "complete")]


async def check_a_failed_or_blocked_ticket_can_be_retried(storage: Storage) -> None:
    """Each retry counts; why it stopped is shown until then."""
    async with _desk(storage) as desk:
        await desk.new()
        leased = await desk.leased()
        failed = await desk.store.fail(leased.ticket.id, _proof(leased), code="TOOL_TIMEOUT", reason="late")
        assert failed.status == "failed"
        assert failed.metadata.failure is not None
        assert failed.metadata.failure.code == "TOOL_TIMEOUT"
        retried = await desk.store.retry(failed.id)
        assert (retried.status, retried.metadata.retry_count, retried.metadata.failure) == ("pending", 1, None)
        leased = await desk.leased()
        blocked = await desk.store.block(
            failed.id, code="POLICY_DENIED", reason="no", source="gateway", proof=_proof(leased)
        )
        assert blocked.metadata.block is not None
        assert msgspec.to_builtins(blocked.metadata.block) == {
            "code": "POLICY_DENIED", "reason": "no", "source": "gateway",
        }  # fmt: skip
        with _refused(Code.lease_conflict):
            await desk.store.lease_by_id(failed.id, owner="worker")
        assert (await desk.store.retry(failed.id)).metadata.retry_count == 2


async def check_a_failed_ticket_is_leased_again_by_its_identifier_alone(storage: Storage) -> None:
    """That is a retry, and counts as one; a blocked one has to be retried first."""
    async with _desk(storage) as desk:
        await desk.new()
        leased = await desk.leased()
        await desk.store.fail(leased.ticket.id, _proof(leased), code="TOOL_TIMEOUT", reason="late")
        assert await desk.store.lease("TOOL", owner="worker") == []
        again = await desk.store.lease_by_id(leased.ticket.id, owner="other")
        meta = again.ticket.metadata
        assert (again.ticket.status, meta.retry_count, meta.failure, meta.lease_owner) == ("running", 1, None, "other")
        assert await desk.store.get(leased.ticket.id) == again.ticket
        done = await desk.store.complete(leased.ticket.id, _OUTPUTS, proof=_proof(again))
        assert (done.status, done.metadata.retry_count) == ("done", 1)


async def check_a_failed_ticket_whose_lease_broke_off_is_leased_again(storage: Storage) -> None:
    """The worker that leased it by its identifier died before that was recorded: once its lease is over, it is due."""
    async with _desk(storage) as desk:
        await desk.new()
        leased = await desk.leased()
        await desk.store.fail(leased.ticket.id, _proof(leased), code="TOOL_TIMEOUT", reason="late")
        now = desk.clock.now()
        terms = LeaseClaim(kind=STREAM_KIND, owner="dead", now=now, lease_until=now + SECOND, state="running")
        assert await desk.store.journal.acquire(stream_of(leased.ticket.id), terms) is not None
        assert await desk.store.lease("TOOL", owner="worker") == []
        desk.clock.advance(1)
        (again,) = await desk.store.lease("TOOL", owner="worker")
        assert (again.ticket.status, again.ticket.metadata.retry_count) == ("running", 1)


async def check_what_one_store_remembers_does_not_outlive_what_another_wrote(storage: Storage) -> None:
    """A lease that was lost to another process is lost, and the new holder's proof is good everywhere."""
    async with _desk(storage) as desk:
        other = TicketStore(desk.store.journal, SystemRandomSource())
        await desk.new()
        late = await desk.leased("slow", lease_sec=10)
        desk.clock.advance(11)
        (taken,) = await other.lease("TOOL", owner="fast")
        for write in (
            lambda: desk.store.renew(late.ticket.id, _proof(late)),
            lambda: desk.store.complete(late.ticket.id, _OUTPUTS, proof=_proof(late)),
        ):
            with _refused(Code.lease_owner_mismatch):
                await write()
        done = await desk.store.complete(late.ticket.id, _OUTPUTS, proof=_proof(taken))
        assert (done.status, done) == ("done", await other.complete(late.ticket.id, {}, proof=_proof(taken)))
        assert await desk.store.derived(done.id, "not_tool") == await other.get(done.id)


async def check_a_ticket_of_a_process_that_died_here_is_leased_at_once(storage: Storage) -> None:
    """Its lease still ran; what a process that lives, or one of another machine, holds is left to it."""
    async with _desk(storage) as desk:
        this = Owner.this()
        dead = msgspec.structs.replace(this, started="0")
        far = msgspec.structs.replace(dead, host="far")
        first, _, _ = [await desk.new() for _ in range(3)]
        held = [await desk.leased(str(owner)) for owner in (dead, this, far)]
        (taken,) = await desk.store.lease("TOOL", owner="next", limit=3)
        assert (first.id, held[0].ticket.id) == (taken.ticket.id, taken.ticket.id)
        with _refused(Code.lease_owner_mismatch):
            await desk.store.renew(taken.ticket.id, _proof(held[0]))


async def check_a_pending_ticket_can_be_blocked_without_a_lease(storage: Storage) -> None:
    """It cannot be leased until it is retried."""
    async with _desk(storage) as desk:
        ticket = await desk.new()
        blocked = await desk.store.block(ticket.id, code="X", reason="wait", source="ann")
        assert blocked.status == "blocked"
        assert await desk.store.lease("TOOL", owner="worker") == []


async def check_a_block_says_what_why_and_who(storage: Storage) -> None:
    """All three, or none of it is recorded."""
    async with _desk(storage) as desk:
        ticket = await desk.new()
        for code, reason, source in (("", "wait", "ann"), ("X", "", "ann"), ("X", "wait", "")):
            with _refused(Code.USAGE):
                await desk.store.block(ticket.id, code=code, reason=reason, source=source)
        assert (await desk.store.get(ticket.id)).status == "pending"


async def check_of_many_who_fill_one_ticket_one_is_recorded(storage: Storage) -> None:
    """The others get what it was filled with."""
    async with _desk(storage) as desk:
        ticket = await desk.new()
        outcomes = await asyncio.gather(
            *(desk.store.complete(ticket.id, {"by": number}, by="http_fill") for number in range(20))
        )
        outputs = [outcome.metadata.final_outputs for outcome in outcomes]
        assert all(each == outputs[0] for each in outputs)


TICKET_CHECKS: Final[tuple[Check, ...]] = checks_in(globals())
"""Every promise."""
