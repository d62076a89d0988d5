"""Work units in the journal: one active run, and a result that counts only if it is that run's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from msgspec.structs import replace

from remit.codes import Code
from remit.errors import NotFoundError, StateError, UsageError
from remit.journal.journal import Journal
from remit.parts.work.order import WorkOrder
from remit.parts.work.references import IssueRef, RunId
from remit.parts.work.result import Changes, Test, WorkResult
from remit.parts.work.store import Verdict, WorkStore
from remit.parts.work.unit import LACKING, rest_after
from remit_testing.clock import ManualClock
from tests.journal.storages import KEYS, SqliteStorage

ISSUE = IssueRef.parse("org/repo#7")


@pytest.fixture(params=KEYS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[WorkStore]:
    async with SqliteStorage(tmp_path / "journal.db", KEYS[request.param]).open(ManualClock()) as journal:
        work = WorkStore(journal)
        await work.open(ISSUE, "Mend the clock")
        yield work


def order_of(run: RunId) -> WorkOrder:
    """Return an order for a run."""
    return WorkOrder(issue_ref=str(ISSUE), run_id=str(run), role="work", repo_dir="/x", spec_ref="s")


async def start(store: WorkStore, *, executor: str = "shell", previous: str = "") -> WorkOrder:
    """Make a new run the active one."""
    return await store.start(ISSUE, order_of, role="work", executor=executor, previous=previous)


def result_of(order: WorkOrder, **given: object) -> WorkResult:
    """Return a result that lacks nothing."""
    made = WorkResult(
        issue_ref=order.issue_ref,
        run_id=order.run_id,
        status="ok",
        summary="Done.",
        changes=Changes(commit="abc"),
        tests=(Test(result="pass", command="make test"),),
    )
    return replace(made, **given)


async def test_work_begins_once_and_lists_by_its_head(store: WorkStore) -> None:
    await store.open(ISSUE, "Another title")
    (row,) = await store.page()
    assert (row.issue_ref, row.title, row.state, row.run_id) == (str(ISSUE), "Mend the clock", "todo", "")
    order = await start(store)
    (row,) = await store.page(states=["doing"])
    assert (row.run_id, row.executor) == (order.run_id, "shell")
    assert await store.order(ISSUE, order.run_id) == order


async def test_runs_are_numbered_by_their_issue(store: WorkStore) -> None:
    first = await start(store)
    await store.stop(ISSUE, first.run_id, reason="timeout")
    second = await start(store, previous=first.run_id)
    assert [run[-4:] for run in (first.run_id, second.run_id)] == ["0001", "0002"]
    other = IssueRef.parse("local#1")
    await store.open(other, "x")
    assert (await store.start(other, order_of_other, role="work", executor="x")).run_id.endswith("0001")


def order_of_other(run: RunId) -> WorkOrder:
    """Return an order of another issue."""
    return replace(order_of(run), issue_ref="local#1")


async def test_one_run_is_active_and_no_issue_that_is_done_gets_another(store: WorkStore) -> None:
    order = await start(store)
    with pytest.raises(StateError) as refused:
        await start(store)
    assert refused.value.code is Code.WORK_CONFLICT
    assert (await store.accept(order, result_of(order))).state == "review"
    await store.move(ISSUE, "done", by="ann")
    with pytest.raises(StateError):
        await start(store)
    await store.move(ISSUE, "todo", by="ann")
    await start(store)


async def test_of_ten_that_start_at_once_one_is_active(store: WorkStore) -> None:
    ends = await asyncio.gather(*(start(store) for _ in range(10)), return_exceptions=True)
    assert sum(isinstance(end, WorkOrder) for end in ends) == 1
    assert {end.code for end in ends if isinstance(end, StateError)} == {Code.WORK_CONFLICT}


async def test_a_late_result_is_archived_and_merged_nowhere(store: WorkStore) -> None:
    old = await start(store)
    assert await store.stop(ISSUE, old.run_id, reason="timeout", by="ann")
    new = await start(store, executor="other", previous=old.run_id)
    late = await store.accept(old, result_of(old))
    assert (late.accepted, late.code, late.trigger) == (False, "stale_result_discarded", "")
    unit = await store.unit(ISSUE)
    assert (unit.active, unit.state, unit.runs[old.run_id].late) == (new.run_id, "doing", 1)
    assert await store.late(ISSUE, old.run_id) == [result_of(old)]
    assert await store.result(ISSUE, old.run_id) is None
    assert unit.unwritten == {}
    assert (await store.accept(new, result_of(new))).accepted


async def test_a_person_adopts_a_late_result_once_no_run_is_active(store: WorkStore) -> None:
    old = await start(store)
    await store.stop(ISSUE, old.run_id, reason="timeout")
    await store.accept(old, result_of(old))
    verdict = await store.accept(old, result_of(old), adopter="ann")
    assert verdict.accepted
    assert (await store.unit(ISSUE)).results[old.run_id].by == "ann"


async def test_nobody_adopts_while_another_run_is_active(store: WorkStore) -> None:
    old = await start(store)
    await store.stop(ISSUE, old.run_id, reason="timeout")
    await start(store, previous=old.run_id)
    assert not (await store.accept(old, result_of(old), adopter="ann")).accepted


async def test_a_result_that_is_sent_twice_counts_once(store: WorkStore) -> None:
    order = await start(store)
    first = await store.accept(order, result_of(order))
    assert await store.accept(order, result_of(order)) == first
    assert (await store.unit(ISSUE)).runs[order.run_id].late == 0
    other = await store.accept(order, result_of(order, summary="Other."))
    assert (other.accepted, other.code) == (False, "stale_result_discarded")


async def test_the_comment_is_queued_with_the_result_and_written_once(store: WorkStore) -> None:
    order = await start(store)
    verdict = await store.accept(order, result_of(order))
    comment = await store.comment(ISSUE, verdict.trigger)
    assert comment is not None
    assert comment.trigger == f"workrun:{order.run_id}"
    assert comment.marker in comment.body
    await store.confirm_written(ISSUE, verdict.trigger, "local#7/e2")
    await store.confirm_written(ISSUE, verdict.trigger, "local#7/e3")
    unit = await store.unit(ISSUE)
    assert (unit.unwritten, unit.written) == ({}, {verdict.trigger: "local#7/e2"})
    assert await store.comment(ISSUE, verdict.trigger) is None


async def test_a_run_without_a_usable_result_needs_a_person(store: WorkStore) -> None:
    order = await start(store)
    verdict = await store.refuse(ISSUE, order.run_id, Code.output_unparseable, "the result names no run")
    assert verdict.state == "needs-human"
    unit = await store.unit(ISSUE)
    assert (unit.active, unit.state, unit.reason) == ("", "needs-human", "the result names no run")
    assert (await store.refuse(ISSUE, order.run_id, Code.output_unparseable, "again")).code == "stale_run"


async def test_after_three_failures_the_issue_is_blocked(store: WorkStore) -> None:
    states = []
    for _ in range(3):
        order = await start(store)
        states.append((await store.accept(order, result_of(order, status="fail"))).state)
    assert states == ["doing", "doing", "blocked"]


async def test_runs_that_lacked_their_environment_are_no_failures(store: WorkStore) -> None:
    states = []
    for code in ("", LACKING, "", LACKING, LACKING, LACKING, ""):
        order = await start(store)
        verdict = await store.accept(order, result_of(order, status="fail", result_code=code))
        states.append(verdict.state)
    assert states == ["doing"] * 6 + ["blocked"]
    assert (await store.unit(ISSUE)).lacked == 0


async def test_how_many_of_the_last_runs_lacked_their_environment(store: WorkStore) -> None:
    for code in ("", LACKING, LACKING):
        order = await start(store)
        await store.accept(order, result_of(order, status="fail", result_code=code))
    unit = await store.unit(ISSUE)
    assert (unit.failures, unit.lacked) == (1, 2)
    assert [rest_after(lacked) for lacked in (0, 1, 2, 3, 99)] == [0, 30, 60, 120, 3600]


async def test_what_is_not_there_is_said_to_be(store: WorkStore) -> None:
    nowhere = IssueRef.parse("local#99")
    for looked_up in (store.unit(nowhere), store.order(ISSUE, "2026-01-01-x-0001")):
        with pytest.raises(NotFoundError) as refused:
            await looked_up
        assert refused.value.code is Code.WORK_NOT_FOUND
    order = await start(store)
    with pytest.raises(UsageError):
        await store.accept(order, result_of(order, run_id="2026-01-01-work-0009"))


class Machine(RuleBasedStateMachine):
    """Runs that start, stop, end and come late, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.opened = SqliteStorage(None, None).open(ManualClock())
        self.journal: Journal = self.loop.run_until_complete(self.opened.__aenter__())
        self.store = WorkStore(self.journal)
        self.loop.run_until_complete(self.store.open(ISSUE, "x"))
        self.orders: list[WorkOrder] = []
        self.active: WorkOrder | None = None
        self.accepted: set[str] = set()

    def teardown(self) -> None:
        self.loop.run_until_complete(self.opened.__aexit__(None, None, None))
        self.loop.close()

    @rule()
    def start(self) -> None:
        if self.active is None:
            self.active = self.loop.run_until_complete(start(self.store))
            self.orders.append(self.active)

    @rule()
    def stop(self) -> None:
        if self.active is not None:
            assert self.loop.run_until_complete(self.store.stop(ISSUE, self.active.run_id, reason="r"))
            self.active = None

    @rule(data=st.data(), status=st.sampled_from(["ok", "fail", "blocked"]))
    def send(self, data: st.DataObject, status: str) -> None:
        if not self.orders:
            return
        order = data.draw(st.sampled_from(self.orders))
        result = result_of(order, status=status, summary=f"{len(self.accepted)} {status}")
        verdict: Verdict = self.loop.run_until_complete(self.store.accept(order, result))
        current = self.active is not None and self.active.run_id == order.run_id
        assert verdict.accepted == current
        if current:
            self.accepted.add(order.run_id)
            self.active = None

    @invariant()
    def one_result_of_each_run_and_one_active(self) -> None:
        unit = self.loop.run_until_complete(self.store.unit(ISSUE))
        assert unit.active == (self.active.run_id if self.active is not None else "")
        assert set(unit.results) == self.accepted
        assert len(unit.unwritten) == len(self.accepted)


@pytest.mark.slow
def test_whatever_comes_in_whatever_order_only_the_active_run_counts() -> None:
    limits = hypothesis_settings(max_examples=20, stateful_step_count=15, deadline=None)
    run_state_machine_as_test(Machine, settings=limits)
