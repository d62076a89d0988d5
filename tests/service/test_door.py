"""The door to the gate for programs of providers: what asks a person waits for the answer."""

from __future__ import annotations

import asyncio
from typing import Literal

import pytest

from remit.service.door import SessionDoor
from tests.opened import OpenRemit
from tests.patience import PATIENCE_S
from tests.service.desk import Desk

ASKING = {"policy.rules": [{"effect": "ask", "tools": ["desk.*"]}]}


@pytest.mark.parametrize(("decision", "ok"), [("approve", True), ("deny", False)])
async def test_a_call_waits_for_the_person_whom_the_gate_asks(
    remit_in: OpenRemit, decision: Literal["approve", "deny"], *, ok: bool
) -> None:
    async with remit_in(providers=[Desk()], flags=ASKING) as remit:
        journal, confirmations = remit.runtime.journal, remit.service.confirmations
        door = SessionDoor(journal, lambda: remit.service)
        session = await door.open("alice", "agent")
        call = asyncio.create_task(door.call(session, "desk.write", {"text": "x"}))
        mark = 0
        async with asyncio.timeout(PATIENCE_S):
            while not (asked := await confirmations.pending()):
                mark = await journal.heads_changed(mark)
        assert not call.done()
        await confirmations.decide(asked[0].confirmation, decision, digest=asked[0].digest, by="bob", reason="because")
        passage = await call
        assert (passage.ok, passage.code) == (ok, "" if ok else "CONFIRMATION_DENIED")
        (row,) = await remit.service.sessions.rows()
        assert (row.session, row.principal) == (session, "alice")
