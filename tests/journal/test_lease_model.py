"""Owners that take, renew and give up the lease of one stream, in any order and late: one of them holds it at most.

The model is a token and a time; a plain stream, a job and a ticket all follow it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from remit.clock import SECOND
from remit_testing.clock import ManualClock
from remit_testing.journal.storage import Storage
from remit_testing.leases import LEASE_S, Holder
from tests.journal.leasable import KINDS
from tests.journal.storages import SqliteStorage
from tests.simulation.test_store import ShelfStorage

T = TypeVar("T")
OWNER = st.sampled_from(["ann", "bob", "cleo"])


class LeaseModel(RuleBasedStateMachine):
    """The model: how often the stream was taken, who has it, and until when."""

    kind = "stream"

    def storage(self) -> Storage:
        """The storage under test, empty."""
        return SqliteStorage()

    @initialize()
    def begin(self) -> None:
        self.clock = ManualClock()
        self.runner = asyncio.Runner()
        self.opened = AsyncExitStack()
        self.journal = self.run(self.opened.enter_async_context(self.storage().open(self.clock)))
        self.stream = self.run(KINDS[self.kind](self.journal))
        self.holders: list[Holder] = []
        """Everyone who ever took the stream, in order: the place of each is its token."""
        self.owner: str | None = None
        self.until = 0

    def run(self, work: Awaitable[T]) -> T:
        async def main() -> T:
            return await work

        return self.runner.run(main())

    def teardown(self) -> None:
        if hasattr(self, "opened"):
            self.run(self.opened.aclose())
            self.runner.close()

    def holds(self, token: int) -> bool:
        return self.owner is not None and token == len(self.holders) - 1

    @rule(owner=OWNER)
    def take(self, owner: str) -> None:
        free = self.owner is None or self.until <= self.clock.now()
        holder = self.run(self.stream.lease(owner))
        assert (holder is not None) == free
        if holder is not None:
            self.holders.append(holder)
            self.owner, self.until = owner, self.clock.now() + LEASE_S * SECOND

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        token = data.draw(st.integers(0, len(self.holders) - 1))
        assert self.run(self.holders[token].renew()) == self.holds(token)
        if self.holds(token):
            self.until = self.clock.now() + LEASE_S * SECOND

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        token = data.draw(st.integers(0, len(self.holders) - 1))
        assert self.run(self.holders[token].release()) == self.holds(token)
        if self.holds(token):
            self.owner = None

    @rule(seconds=st.sampled_from([1, LEASE_S - 1, LEASE_S]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @invariant()
    def the_head_says_who_holds_the_stream(self) -> None:
        heads = [head for kind in ("job", "ticket") for head in self.run(self.journal.leases(kind))]
        held = [(head.lease_owner, head.epoch, head.lease_until) for head in heads]
        assert held == ([(self.owner, len(self.holders), self.until)] if self.owner else [])


few = settings(max_examples=10, stateful_step_count=20, deadline=None)


class TestStream(LeaseModel.TestCase):  # type: ignore[misc, valid-type] # hypothesis makes it
    settings = few


class OnShelf(LeaseModel):
    def storage(self) -> Storage:
        return ShelfStorage()


class TestStreamOnShelf(OnShelf.TestCase):  # type: ignore[misc, valid-type] # hypothesis makes it
    settings = few


class JobModel(LeaseModel):
    kind = "job"


class TestJob(JobModel.TestCase):  # type: ignore[misc, valid-type] # hypothesis makes it
    settings = few


class TicketModel(LeaseModel):
    kind = "ticket"


class TestTicket(TicketModel.TestCase):  # type: ignore[misc, valid-type] # hypothesis makes it
    settings = few
