"""A recipe that takes another way than its record is stopped before it does anything twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from remit import Code, JobEndedError, Remit, Run, recipe, tool
from remit.clock import SystemClock
from remit.errors import JournalError, ProviderError, RunError
from remit.jobs.branch import RunBranch
from remit.journal.blobs import BlobRef
from remit.journal.journal import Journal
from remit.record.views import JobRow
from tests.jumping import JumpingClock
from tests.opened import OpenRemit, until, until_waiting
from tests.patience import PATIENCE_S

ALLOW = {"policy.rules": [{"effect": "allow", "tools": ["*"]}], "jobs.drain_seconds": 0}
Way = Callable[[Run], Awaitable[Any]]


class Bank:
    """A tool with a side effect that counts."""

    def __init__(self) -> None:
        self.charged: list[int] = []

        @tool("bank.charge", level="L1")
        async def charge(cents: int) -> int:
            self.charged.append(cents)
            return cents

        self.tool = charge


def version(number: int, way: Way) -> Any:
    """A recipe that goes this way."""

    @recipe("changing", version=str(number))
    async def changing(run: Run) -> Any:
        return await way(run)

    return changing


async def by_key(run: Run) -> None:
    await run.call("bank.charge", {"cents": 5}, key="charge")
    await run.wait_signal("go")


async def by_another_key(run: Run) -> None:
    await run.call("bank.charge", {"cents": 5}, key="charge-card")
    await run.wait_signal("go")


async def side_by_side(run: Run) -> None:
    await run.gather(run.call("bank.charge", {"cents": 5}), run.call("bank.charge", {"cents": 6}))
    await run.wait_signal("go")


async def one_by_one(run: Run) -> None:
    await run.call("bank.charge", {"cents": 5})
    await run.wait_signal("go")


async def in_a_branch(run: Run) -> None:
    async def branch() -> None:
        await run.call("bank.charge", {"cents": 5}, key="charge")
        await run.wait_signal("go")

    await run.gather(run.wait_signal("go"), branch())


async def otherwise_in_a_branch(run: Run) -> None:
    async def branch() -> None:
        await run.call("bank.charge", {"cents": 5}, key="charge-card")

    await run.gather(run.wait_signal("go"), branch())


async def side_by_side_now(run: Run) -> None:
    await run.gather(run.call("bank.charge", {"cents": 5}), run.call("bank.charge", {"cents": 6}))


@recipe("paying")
async def paying(run: Run) -> None:
    await run.call("bank.charge", {"cents": 5})


async def in_a_child(run: Run) -> None:
    await run.child(paying(), key="pay")


async def asked_for_little(run: Run) -> None:
    if (await run.confirm("Charge 5 cents?", details={"cents": 5})).approved:
        await run.call("bank.charge", {"cents": 5})


async def asks_for_much(run: Run) -> None:
    if (await run.confirm("Charge 5 cents?", details={"cents": 500})).approved:
        await run.call("bank.charge", {"cents": 500})


async def waits_for_one(run: Run) -> None:
    await run.wait_signal("one")


async def waits_for_other(run: Run) -> None:
    await run.wait_signal("other")


async def ends_at_once(run: Run) -> None:
    run.progress("nothing is left to do")


async def fails_at_once(run: Run) -> None:
    run.progress("nothing can be done")
    raise ValueError


async def stubborn(run: Run) -> None:
    """Never takes no for an answer, and would not even give way to others."""
    while True:
        try:
            await run.call("bank.charge", {"cents": 7})
        except Exception:  # noqa: BLE001, S112 - what this test is about
            continue


def is_stuck(row: JobRow) -> bool:
    return row.code == "NONDETERMINISTIC"


async def changed(remit_in: OpenRemit, bank: Bank, before: Way, after: Way) -> Any:
    """A job that waits, recorded one way, is taken up with code that goes another; what its record then says."""
    first = version(1, before)
    async with remit_in(tools=[bank.tool], recipes=[first], flags=ALLOW) as remit:
        job = await remit.start(first())
        await until_waiting(remit, job.id)
    async with remit_in(tools=[bank.tool], recipes=[version(2, after)], flags=ALLOW) as remit:
        await answered(remit, job.id)
        await remit.service.jobs.resume(job.id)
        await until(remit, job.id, is_stuck)
        return await remit.service.jobs.replay(job.id)


async def answered(remit: Remit, job: str) -> None:
    for question in await remit.service.confirmations.pending(job):
        await remit.service.confirmations.decide(question.confirmation, "approve", by="ann")


@pytest.mark.parametrize(
    ("before", "after", "charged"),
    [
        (by_key, by_another_key, [5]),
        (side_by_side, one_by_one, [5, 6]),
        (in_a_branch, otherwise_in_a_branch, [5]),
        (one_by_one, side_by_side_now, [5]),
        (by_key, in_a_child, [5]),
        (side_by_side, stubborn, [5, 6]),
        (by_key, ends_at_once, [5]),
        (by_key, fails_at_once, [5]),
        (asked_for_little, asks_for_much, []),
        (waits_for_one, waits_for_other, []),
    ],
)
async def test_what_is_recorded_is_not_left_out_and_done_again_elsewhere(
    remit_in: OpenRemit, before: Way, after: Way, charged: list[int]
) -> None:
    bank = Bank()
    report = await changed(remit_in, bank, before, after)
    assert bank.charged == charged
    assert report.verdict == "diverged"


async def test_the_code_that_recorded_it_goes_on_all_the_same(remit_in: OpenRemit) -> None:
    bank = Bank()
    await changed(remit_in, bank, by_key, by_another_key)
    async with remit_in(tools=[bank.tool], recipes=[version(1, by_key)], flags=ALLOW) as remit:
        (job,) = await remit.service.jobs.rows()
        await remit.job(job.job).signal("go")
        assert (await remit.ended(job.job)).state == "completed"
    assert bank.charged == [5]


async def alone(run: Run) -> Any:
    return await run.call("bank.slow")


async def gathered(run: Run) -> Any:
    return await run.gather(run.call("bank.slow"))


async def beside_a_wait(run: Run) -> Any:
    return await run.gather(run.call("bank.slow"), run.wait_signal("never"))


@pytest.mark.parametrize("way", [alone, gathered, beside_a_wait])
async def test_a_recipe_with_a_clock_of_its_own_cannot_give_an_effect_up(remit_in: OpenRemit, way: Way) -> None:
    reached: list[str] = []
    limits: list[asyncio.Timeout] = []

    @tool("bank.slow", level="L1")
    async def slow() -> str:
        reached.append("slow")
        if len(reached) == 1:
            limits[-1].reschedule(asyncio.get_running_loop().time())
            await asyncio.get_running_loop().create_future()
        return "charged"

    @recipe("hasty")
    async def hasty(run: Run) -> Any:
        try:
            async with asyncio.timeout(None) as limit:
                limits.append(limit)
                await way(run)
        except TimeoutError:
            return (await run.call("bank.slow")).value

    async with remit_in(tools=[slow], recipes=[hasty], flags=ALLOW) as remit:
        job = await remit.start(hasty())
        await until(remit, job.id, lambda row: row.code == "FOREIGN_TIMEOUT")
        assert reached == ["slow"]
        await remit.service.jobs.resume(job.id)
        # It may have happened: a person says so before anything else is done.
        await until(remit, job.id, lambda row: "a decision on step 1" in row.waiting_for)
    assert reached == ["slow"]


async def test_a_recorded_value_that_cannot_be_read_sends_no_recipe_another_way(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = Bank()

    @tool("bank.statement", level="L0")
    async def statement() -> str:
        return "x" * 20_000

    @recipe("careful")
    async def careful(run: Run) -> None:
        try:
            await run.call("bank.statement")
        except Exception:  # noqa: BLE001 - what this test is about
            await run.call("bank.charge", {"cents": 5})
        await run.wait_signal("go")

    given: dict[str, Any] = {"tools": [bank.tool, statement], "recipes": [careful], "flags": ALLOW}
    async with remit_in(**given) as remit:
        job = await remit.start(careful())
        await until_waiting(remit, job.id)
    read = Journal.value

    async def failing(self: Journal, inline: Any, ref: Any) -> bytes | None:
        if isinstance(ref, BlobRef):
            raise JournalError("the disk does not answer")
        return await read(self, inline, ref)

    async with remit_in(**given) as remit:
        monkeypatch.setattr(Journal, "value", failing)
        await remit.job(job.id).signal("go")
        with pytest.raises(JournalError, match="does not answer"):
            await remit.job(job.id)
    monkeypatch.undo()
    async with remit_in(**given, clock=JumpingClock(SystemClock(), ahead_s=3_600)) as remit:
        await remit.job(job.id)
    assert bank.charged == []


async def test_what_is_not_recorded_of_an_outcome_is_not_given(remit_in: OpenRemit) -> None:
    @tool("bank.refuses", level="L0")
    async def refuses() -> None:
        raise ProviderError("no", detail={"why": "closed"})

    @recipe("curious")
    async def curious(run: Run) -> Any:
        return (await run.attempt("bank.refuses")).detail

    async with remit_in(tools=[refuses], recipes=[curious], flags=ALLOW) as remit:
        job = await remit.start(curious())
        assert await job is None
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"


async def test_a_question_is_the_same_in_whatever_order_its_sets_come(remit_in: OpenRemit) -> None:
    @recipe("tags")
    async def tags(run: Run) -> bool:
        words = {"alpha", "beta", "gamma", "delta"}
        return (await run.confirm("All of them?", details={"tags": words if fresh else Backwards(words)})).approved

    class Backwards(set[str]):
        """The same set in a process where texts hash otherwise."""

        def __iter__(self) -> Iterator[str]:
            return reversed(list(super().__iter__()))

    fresh = True
    async with remit_in(recipes=[tags]) as remit:
        job = await remit.start(tags())
        await until_waiting(remit, job.id)
    fresh = False
    async with remit_in(recipes=[tags]) as remit:
        await answered(remit, job.id)
        assert await remit.job(job.id) is True


async def test_a_signal_may_have_any_name(remit_in: OpenRemit) -> None:
    @recipe("odd")
    async def odd(run: Run) -> Any:
        return await run.wait_signal("stuck:not")

    async with remit_in(recipes=[odd]) as remit:
        job = await remit.start(odd())
        await until_waiting(remit, job.id)
        await job.signal("stuck:not", 1)
        assert await job == 1


async def asleep(run: Run) -> Any:
    await run.sleep(3_600)


async def signalled(run: Run) -> Any:
    return await run.wait_signal("never")


async def asking_a_person(run: Run) -> Any:
    return await run.confirm("Go on?")


async def asleep_in_a_branch(run: Run) -> Any:
    return await run.gather(run.now(), run.sleep(3_600))


async def asleep_in_another_recipe(run: Run) -> Any:
    return await run.child(recipe("asleep")(asleep)())


@pytest.mark.parametrize("way", [asleep, signalled, asking_a_person, asleep_in_a_branch, asleep_in_another_recipe])
async def test_a_recipe_with_a_clock_of_its_own_does_not_wait(remit_in: OpenRemit, way: Way) -> None:
    """Were it parked, its clock would be forgotten: an hour would pass in a second's limit."""

    @recipe("hasty")
    async def hasty(run: Run) -> Any:
        await run.uuid()
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await way(run)
        except RunError:
            return (await run.call("bank.charge", {"cents": 5})).value

    bank = Bank()
    async with remit_in(tools=[bank.tool], recipes=[hasty, recipe("asleep")(asleep)], flags=ALLOW) as remit:
        job = await remit.start(hasty())
        with pytest.raises(JobEndedError) as raised:
            await job
        assert (raised.value.code, bank.charged) == (Code.FOREIGN_TIMEOUT, [])
        assert "timeout=" in raised.value.remedy
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"


async def test_a_wait_that_an_older_remit_recorded_within_such_a_limit_ends_as_it_would_have(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    @recipe("hasty")
    async def hasty(run: Run) -> Any:
        async with asyncio.timeout(PATIENCE_S):
            return await run.wait_signal("go")

    async with remit_in(recipes=[hasty]) as remit:
        with monkeypatch.context() as patch:
            patch.setattr(RunBranch, "limited", False)
            job = await remit.start(hasty())
            await until_waiting(remit, job.id)
        await job.signal("go", 5)
        assert await job == 5
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"


async def test_a_call_that_would_wait_within_such_a_limit_is_left_to_other_code(remit_in: OpenRemit) -> None:
    bank, limits = Bank(), [PATIENCE_S, None]

    @recipe("hasty")
    async def hasty(run: Run) -> Any:
        try:
            async with asyncio.timeout(limits[0]):
                return (await run.call("bank.charge", {"cents": 5})).value
        except RunError:
            return "went another way"

    async with remit_in(tools=[bank.tool], recipes=[hasty], flags={"jobs.drain_seconds": 0}) as remit:
        job = await remit.start(hasty())
        await until(remit, job.id, lambda row: row.code == "FOREIGN_TIMEOUT")
        question = (await job.questions())[0]
        await remit.service.confirmations.decide(question.confirmation, "approve", by="ann")
        del limits[0]
        await remit.service.jobs.resume(job.id)
        assert await job == 5
    assert bank.charged == [5]
