from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from remit import CallContext, JobEndedError, Remit, Run, recipe, tool
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


@tool("t.front", level="L0")
def front(ctx: CallContext, text: str, times: int = 1) -> str:
    """Say where the call stands."""
    return f"{ctx.step}: {text * times}"


@tool("t.behind", level="L0")
async def behind(text: str, ctx: CallContext, times: int = 1) -> str:
    """Say where the call stands."""
    return f"{ctx.step}: {text * times}"


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


async def test_a_tool_with_a_context_is_called_without_it() -> None:
    @recipe("informed")
    async def informed(run: Run) -> list[str]:
        return [
            await run.call(front, "a", times=2),
            await run.call(front, text="b"),
            await run.call(behind, "c", times=3),  # type: ignore[call-arg] # a checker only knows one in front
        ]

    async with Remit(":memory:", tools=[front, behind], recipes=[informed], policy=[]) as remit:
        job = await remit.start(informed())
        assert await job == ["1: aa", "2: b", "3: ccc"]
        assert (await remit.replay(job.id)).verdict == "same"


def test_a_context_is_no_part_of_what_a_tool_takes() -> None:
    assert front.usage == behind.usage == "(text: 'str', times: 'int' = 1) -> 'str'"
    with pytest.raises(UsageError) as caught:
        front.arguments()  # type: ignore[call-arg]
    assert "ctx" not in caught.value.remedy


def test_arguments_that_do_not_fit_are_refused_with_what_the_tool_takes() -> None:
    with pytest.raises(UsageError) as caught:
        add.arguments(1, three=2)  # type: ignore[call-arg]
    assert caught.value.code is Code.INVALID_INPUT
    assert "two" in caught.value.remedy


@pytest.mark.parametrize(
    ("given", "named"), [((1,), {}), (({}, {}), {}), (("a", "b", "c"), {}), ((), {"one": 1}), (({},), {"two": 2})]
)
async def test_arguments_of_a_name_are_one_dict(given: tuple[object, ...], named: dict[str, object]) -> None:
    @recipe("wrongly")
    async def wrongly(run: Run) -> object:
        return await run.call("t.add", *given, **named)  # type: ignore[call-overload]

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
from remit import CallContext, Run, recipe, tool


@tool("desk.refund")
async def refund(customer: str, cents: int) -> str:
    return f"{customer} {cents}"


@tool("desk.count", level="L0")
def count(customer: str) -> int:
    return len(customer)


@tool("desk.charge")
async def charge(ctx: CallContext, customer: str, cents: int = 1) -> str:
    return f"{ctx.idempotency_key} {customer} {cents}"


@tool("desk.note")
def note(text: object, about: str) -> None:
    pass


@recipe("triage")
async def triage(run: Run, customer: str) -> str:
    await run.call(note, {"any": "thing"}, about=customer)
    charged: str = await run.call(charge, customer, cents=5)
    assert charged == await run.call(charge, customer=customer)
    orders = await run.call(count, customer)
    return await run.call(refund, customer=customer, cents=orders * 100)


@recipe("wrong")
async def wrong(run: Run) -> int:
    await run.call(refund, customer=1, cents=1)
    await run.call(count, custmer="ada")
    await run.call(charge, cents="ada")
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


VARIANCE = """
from remit import Remit, Run, recipe, run_sync


@recipe("word")
async def word(run: Run, number: int) -> str:
    return str(number)


async def main(remit: Remit) -> None:
    call = word(1)
    print(await remit.run(call))
    text: str = await remit.run(call)
    print(text, run_sync(call))
"""


@pytest.mark.slow
def test_a_call_of_a_recipe_fits_where_a_wider_result_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(VARIANCE)
    assert mypy(tmp_path, "example.py", cache=tmp_path / "cache").stdout == ""
