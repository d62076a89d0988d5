"""What follows once a ticket is done."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from remit.codes import Code
from remit.errors import JournalError
from remit.journal.journal import Journal
from remit.metrics import Registry
from remit.parts.tickets.derive import derive_tool_from_triage_on_fill, maybe_derive_reply_from_tool_on_fill
from remit.parts.tickets.desk import Intake
from remit.parts.tickets.history import Derivation
from remit.parts.tickets.store import TicketStore
from remit.parts.tickets.ticket import NewTicket, Ticket, derived_id
from remit.randomness import SystemRandomSource
from remit_testing.clock import ManualClock
from tests.journal.storages import SqliteStorage

EVENT = {"type": "message", "thread_id": "t1", "content": "hello"}
PROCEED = {"tool_context": {"evidence": []}, "tool_verdict": {"status": "PROCEED"}}
LOG = logging.getLogger("tests")


class Chain:
    """A TRIAGE ticket, the TOOL ticket it asked for, and the store they are in."""

    def __init__(self, journal: Journal, **derivation: bool) -> None:
        intake = Intake("strict", Registry())
        settings = Derivation(**{"replies": True, **derivation})
        self.store = TicketStore(journal, SystemRandomSource(), derivation=settings, problems=intake.derived)

    async def triage(self) -> Ticket:
        made = await self.store.create(NewTicket(type="TRIAGE", event=EVENT))
        outputs = {"triage": {"why": "x"}, "tool_steps": [{"tool_name": "a", "args": {}}]}
        return await self.store.complete(made.id, outputs, by="manual")

    async def tool(self, outputs: Any = PROCEED) -> Ticket:
        triage = await self.triage()
        derived = await derive_tool_from_triage_on_fill(triage, triage.metadata.final_outputs, self.store, LOG)
        assert derived is not None
        return await self.store.complete(derived.ticket, outputs, by="manual")

    async def reply(self, tool: Ticket) -> tuple[Code, str]:
        found = await maybe_derive_reply_from_tool_on_fill(tool, tool.metadata.final_outputs, self.store, LOG)
        return Code[found.reason], found.ticket


@pytest.fixture
async def journal() -> AsyncIterator[Journal]:
    async with SqliteStorage().open(ManualClock()) as one:
        yield one


@pytest.fixture
def chain(journal: Journal) -> Chain:
    return Chain(journal)


async def test_a_triage_that_asks_for_tools_gets_a_tool_ticket_with_its_steps(chain: Chain) -> None:
    tool = await chain.tool()
    assert tool.type == "TOOL"
    assert tool.metadata.tool_input["tool_steps"] == [{"tool_name": "a", "args": {}}]
    assert tool.metadata.tool_input["triage"] == {"why": "x"}
    assert tool.metadata.parent_ticket_id == tool.metadata.triage_ticket_id
    assert (await chain.store.get(tool.metadata.parent_ticket_id)).metadata.derived_ticket_id == tool.id


async def test_a_triage_that_asks_for_nothing_gets_none(chain: Chain) -> None:
    made = await chain.store.create(NewTicket(type="TRIAGE", event=EVENT))
    done = await chain.store.complete(made.id, {"triage": {}}, by="manual")
    assert await derive_tool_from_triage_on_fill(done, {"triage": {}}, chain.store, LOG) is None


async def test_a_tool_ticket_that_proceeds_gets_a_reply(chain: Chain) -> None:
    tool = await chain.tool()
    reason, reply = await chain.reply(tool)
    assert (reason, reply) == (Code.created, derived_id(tool.id, "REPLY"))
    made = await chain.store.get(reply)
    assert (made.type, made.status, made.event) == ("REPLY", "pending", EVENT)
    assert made.metadata.tool_input["tool_verdict"] == {"status": "PROCEED"}
    assert (await chain.store.get(tool.id)).metadata.derive_reason == "created"


async def test_a_reply_is_derived_once(chain: Chain) -> None:
    tool = await chain.tool()
    await chain.reply(tool)
    again = await chain.store.get(tool.id)
    assert (await chain.reply(again))[0] is Code.idempotent
    assert len(await chain.store.page(kind="REPLY")) == 1


async def test_a_reply_whose_parent_does_not_know_it_is_joined_to_it(chain: Chain) -> None:
    tool = await chain.tool()
    await chain.store.create(NewTicket(type="REPLY", event=EVENT), identifier=derived_id(tool.id, "REPLY"))
    assert (await chain.reply(tool))[0] is Code.recovered_orphan
    assert (await chain.store.get(tool.id)).metadata.derived_ticket_id == derived_id(tool.id, "REPLY")


@pytest.mark.parametrize(
    ("outputs", "reason"),
    [
        ({}, Code.missing_tool_verdict),
        (None, Code.missing_tool_verdict),
        ({"tool_verdict": "MAYBE"}, Code.missing_tool_verdict),
        ({"tool_verdict": "DEFER"}, Code.gate_tool_verdict_not_proceed),
        ({"tool_verdict": {"status": "BLOCK", "reason": "x"}}, Code.gate_tool_verdict_not_proceed),
    ],
)
async def test_without_a_verdict_to_proceed_there_is_no_reply(chain: Chain, outputs: Any, reason: Code) -> None:
    tool = await chain.tool(outputs)
    assert await chain.reply(tool) == (reason, "")
    assert (await chain.store.get(tool.id)).metadata.derive_reason == reason.name


@pytest.mark.parametrize(
    ("given", "reason"),
    [({"replies": False}, Code.gate_reply_derivation_disabled), ({"tool_only": True}, Code.gate_tool_only_mode)],
)
async def test_a_setting_can_forbid_replies(journal: Journal, given: dict[str, bool], reason: Code) -> None:
    chain = Chain(journal, **given)
    assert (await chain.reply(await chain.tool()))[0] is reason
    assert await chain.store.page(kind="REPLY") == []


async def test_only_tool_tickets_have_replies(chain: Chain) -> None:
    assert await chain.reply(await chain.triage()) == (Code.not_tool, "")


async def test_a_ticket_whose_metadata_say_another_kind_has_no_reply(chain: Chain) -> None:
    tool = await chain.tool()
    other = replace(tool, metadata=replace(tool.metadata, kind="REPLY"))
    assert await chain.reply(other) == (Code.gate_kind_not_tool, "")


async def test_a_tool_ticket_without_a_parent_has_no_reply(chain: Chain) -> None:
    made = await chain.store.create(NewTicket(type="TOOL", event=EVENT))
    done = await chain.store.complete(made.id, PROCEED, by="manual")
    assert (await chain.reply(done))[0] is Code.missing_parent_ticket_id


@pytest.mark.parametrize("parent", ["tkt_none", "itself"])
async def test_a_parent_that_is_no_triage_ticket_is_reported(chain: Chain, parent: str) -> None:
    other = await chain.store.create(NewTicket(type="TOOL", event=EVENT))
    made = await chain.store.create(
        NewTicket(type="TOOL", event=EVENT, parent_ticket_id=other.id if parent == "itself" else parent)
    )
    done = await chain.store.complete(made.id, PROCEED, by="manual")
    assert (await chain.reply(done))[0] is Code.missing_parent_triage_ticket


async def test_a_reply_that_breaks_its_schema_is_not_created(chain: Chain) -> None:
    triage = await chain.store.create(NewTicket(type="TRIAGE", event={"surprise": 1}))
    made = await chain.store.create(NewTicket(type="TOOL", event=EVENT, parent_ticket_id=triage.id))
    done = await chain.store.complete(made.id, PROCEED, by="manual")
    assert await chain.reply(done) == (Code.schema_validation_failed, "")
    assert (await chain.store.get(made.id)).status == "done"


async def test_a_derivation_that_fails_is_recorded_and_leaves_the_completion(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = await chain.tool()

    async def broken(*_args: Any, **_more: Any) -> Ticket:
        raise JournalError("the disk is full", code=Code.JOURNAL_FULL)

    with monkeypatch.context() as patched:
        patched.setattr(chain.store, "create", broken)
        assert (await chain.reply(tool))[0] is Code.DERIVE_FAILED
    left = await chain.store.get(tool.id)
    assert (left.status, left.metadata.derive_reason) == ("done", "DERIVE_FAILED")
    assert (await chain.reply(left))[0] is Code.created
