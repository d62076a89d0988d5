from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from remit import JobEndedError, Remit, Run, recipe, tool
from remit.codes import Code
from remit.errors import UsageError
from tests.typechecked import NODE, mypy, pyright


class Receipt(msgspec.Struct):
    """What a refund leaves."""

    customer: str
    cents: int


@tool("t.refund", level="L0")
async def refund(customer: str, cents: int = 100) -> Receipt:
    """Give money back."""
    return Receipt(customer, cents)


@tool("t.add", level="L0")
def add(one: int, two: int) -> int:
    """Add."""
    return one + two


@recipe("typed")
async def typed(run: Run, customer: str) -> str:
    """Call tools as the functions they are."""
    receipt = await run.call(refund, customer, cents=await run.call(add, 2, two=3))
    assert isinstance(receipt, Receipt)
    by_name = await run.call("t.add", {"one": 1, "two": 1}, key="named")
    return f"{receipt.customer} {receipt.cents} {by_name.value}"


@recipe("plain")
async def plain(run: Run, word: str) -> int:
    """Do nothing."""
    return len(word)


async def test_a_tool_is_called_as_the_function_it_is_and_recorded_as_by_name() -> None:
    async with Remit(":memory:", tools=[refund, add], recipes=[typed], policy=[]) as remit:
        job = await remit.start(typed("ada"))
        assert await job == "ada 5 2"
        steps = (await job.view()).steps
        assert [step.name for step in steps] == ["tool.t.add", "tool.t.refund", "tool.t.add"]
        assert (await remit.replay(job.id)).verdict == "same"
        assert repr(job) == f"<job {job.id} of typed>"


def test_arguments_that_do_not_fit_are_refused_with_what_the_tool_takes() -> None:
    with pytest.raises(UsageError) as caught:
        add.arguments(1, three=2)  # type: ignore[call-arg]
    assert caught.value.code is Code.INVALID_INPUT
    assert "two" in caught.value.remedy


@pytest.mark.parametrize("given", [(1,), ({}, {}), ("a", "b", "c")])
async def test_arguments_of_a_name_are_one_dict(given: tuple[object, ...]) -> None:
    @recipe("wrongly")
    async def wrongly(run: Run) -> object:
        return await run.call("t.add", *given)  # type: ignore[call-overload]

    async with Remit(":memory:", tools=[add], recipes=[wrongly], policy=[]) as remit:
        with pytest.raises(JobEndedError, match=r"run.call takes the arguments of t.add as one dict"):
            await (await remit.start(wrongly()))


def test_a_recipe_shows_its_name_and_parameters() -> None:
    assert repr(plain) == "<recipe plain(word: str) -> int>"
    assert repr(plain("tea")) == '<call of the recipe plain with {"word":"tea"}>'


async def test_a_run_and_remit_say_what_they_are() -> None:
    seen: list[str] = []

    @recipe
    async def look(run: Run) -> None:
        seen.append(repr(run))

    remit = Remit(":memory:", recipes=[look], policy=[])
    assert repr(remit) == "<Remit on :memory:, closed>"
    async with remit:
        job = await remit.start(look())
        await job
        assert repr(remit) == "<Remit on :memory:, open>"
        (shown,) = seen
        assert shown.startswith(f"<run of {job.id} by ")


EXAMPLE = """
from remit import Run, recipe, tool


@tool("desk.refund")
async def refund(customer: str, cents: int) -> str:
    return f"{customer} {cents}"


@tool("desk.count", level="L0")
def count(customer: str) -> int:
    return len(customer)


@recipe("triage")
async def triage(run: Run, customer: str) -> str:
    orders = await run.call(count, customer)
    return await run.call(refund, customer=customer, cents=orders * 100)


@recipe("wrong")
async def wrong(run: Run) -> int:
    await run.call(refund, customer=1, cents=1)
    await run.call(count, custmer="ada")
    return await run.call(refund, customer="ada", cents=1)
"""


@pytest.mark.slow
def test_mypy_holds_arguments_and_results_under_strict(tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(EXAMPLE)
    checked = mypy(tmp_path, "example.py", cache=tmp_path / "cache")
    found = [line.split(":")[1] for line in checked.stdout.splitlines() if ": error:" in line]
    lines = EXAMPLE.splitlines()
    wrong_lines = [str(number) for number, line in enumerate(lines, 1) if number > lines.index('@recipe("wrong")') + 2]
    assert sorted(set(found)) == [line for line in wrong_lines if "run.call" in lines[int(line) - 1]], checked.stdout


@pytest.mark.slow
@pytest.mark.skipif(NODE is None, reason="pyright runs on Node")
def test_pyright_holds_arguments_and_results_under_strict(tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(EXAMPLE)
    lines = EXAMPLE.splitlines()
    wrong = lines.index('@recipe("wrong")')
    expected = [number for number, line in enumerate(lines, 1) if number > wrong + 2 and "run.call" in line]
    assert pyright(tmp_path, "example.py") == expected
