"""An effect that is never awaited does not happen, and its job fails by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remit import JobEndedError, Remit, Run, recipe, tool
from remit.codes import Code

refunds: list[str] = []


@tool("t.refund", level="L0")
def refund(customer: str) -> str:
    """Note a refund."""
    refunds.append(customer)
    return customer


async def forgotten_call(run: Run) -> str:
    run.call("t.refund", {"customer": "ada"})  # type: ignore[unused-coroutine]
    return "refunded"


async def forgotten_sleep(run: Run) -> str:
    await run.call("t.refund", {"customer": "bob"})
    run.sleep(1)  # type: ignore[unused-coroutine]
    return "slept"


async def forgotten_in_a_branch(run: Run) -> str:
    async def branch() -> None:
        run.call_named("t.refund", {"customer": "eve"})  # type: ignore[unused-coroutine]

    await run.gather(branch())
    return "refunded"


async def one_of_many(run: Run) -> int:
    run.now()  # type: ignore[unused-coroutine]
    for _ in range(200):
        await run.now()
    return 200


@pytest.mark.parametrize(
    ("body", "name"),
    [(forgotten_call, "call"), (forgotten_sleep, "sleep"), (forgotten_in_a_branch, "call_named"), (one_of_many, "now")],
)
async def test_a_job_that_never_awaited_an_effect_fails_and_names_its_line(body: Any, name: str) -> None:
    refunds.clear()
    subject = recipe("subject")(body)
    async with Remit(":memory:", tools=[refund], recipes=[subject], policy=[]) as remit:
        job = await remit.start(subject())
        with pytest.raises(JobEndedError) as caught:
            await job
        assert caught.value.code is Code.NOT_AWAITED
        line = next(
            number for number, text in enumerate(_source(), 1) if f"run.{name}(" in text and "await" not in text
        )
        assert f"run.{name} at {__file__}:{line} " in str(caught.value)
        assert (await remit.replay(job.id)).verdict == "same"
    assert "ada" not in refunds
    assert "eve" not in refunds


async def test_effects_that_are_awaited_later_or_in_branches_are_not_missed() -> None:
    @recipe("late")
    async def late(run: Run) -> str:
        calls = [run.call("t.refund", {"customer": name}) for name in ("a", "b")]
        when = run.now()
        await run.gather(*calls)
        return str(await when > 0)

    async with Remit(":memory:", tools=[refund], recipes=[late], policy=[]) as remit:
        assert await remit.run(late()) == "True"


async def test_an_error_of_the_recipe_is_told_rather_than_what_it_did_not_await() -> None:
    @recipe("failing")
    async def failing(run: Run) -> None:
        run.call("t.refund", {"customer": "ada"})  # type: ignore[unused-coroutine]
        raise ValueError("first")

    async with Remit(":memory:", tools=[refund], recipes=[failing], policy=[]) as remit:
        with pytest.raises(JobEndedError) as caught:
            await remit.run(failing())
        assert caught.value.code is Code.JOB_FAILED


def _source() -> list[str]:
    return Path(__file__).read_text(encoding="utf-8").splitlines()
