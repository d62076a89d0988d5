"""A recipe changed in ten ways and a tool in twelve: what check says under each policy, as in docs/versions.md.

`python -m tests.golden.test_changes` prints them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from remit import Remit, Run, recipe, tool
from remit.golden.check import Checked
from remit.golden.file import Golden
from remit.jobs.recipe import Recipe
from tests.drift.changed import TOOLS, made
from tests.drift.changed import pay as pay_as_it_was

PAGE: Final = Path(__file__).parents[2] / "docs/versions.md"
POLICIES: Final = ("warn", "fail", "migrate")
ALLOWED: Final = {"effect": "allow", "tools": ["c.pay"]}


@tool("c.price", level="L0")
def price(sku: str) -> int:
    """Look a price up."""
    return len(sku)


@tool("c.other", level="L0")
def other(sku: str) -> int:
    """Look a price up elsewhere."""
    return len(sku)


@tool("c.pay")
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


async def look(run: Run, sku: str, name: str = "c.price") -> int:
    """One call."""
    return int((await run.call(name, {"sku": sku})).value)


async def paid(run: Run, amount: int) -> str:
    """Another call."""
    return str((await run.call("c.pay", {"amount": amount})).value)


@recipe("buy", version="1")
async def recorded(run: Run, sku: str) -> str:
    """The recipe as it was."""
    first = await look(run, sku)
    return await paid(run, first + await look(run, "tea"))


@recipe("buy", version="1")
async def reworded(run: Run, sku: str) -> str:
    """The recipe in other words."""
    prices = [await look(run, sku)]
    prices.append(await look(run, "tea"))
    return await paid(run, sum(prices))


@recipe("buy", version="2")
async def raised(run: Run, sku: str) -> str:
    """The recipe as it was."""
    first = await look(run, sku)
    return await paid(run, first + await look(run, "tea"))


@recipe("buy", version="1")
async def optional(run: Run, sku: str, note: str = "") -> str:
    """The recipe with one more parameter."""
    first = await look(run, sku)
    return await paid(run, first + await look(run, "tea")) + note


@recipe("buy", version="1")
async def required(run: Run, sku: str, note: str) -> str:
    """The recipe with one more parameter, which has no default."""
    first = await look(run, sku)
    return await paid(run, first + await look(run, "tea")) + note


@recipe("buy", version="1")
async def argued(run: Run, sku: str) -> str:
    """The recipe with other arguments."""
    first = await look(run, sku)
    return await paid(run, first + await look(run, "coffee"))


@recipe("buy", version="1")
async def elsewhere(run: Run, sku: str) -> str:
    """The recipe with another tool."""
    first = await look(run, sku)
    return await paid(run, first + await look(run, "tea", "c.other"))


@recipe("buy", version="1")
async def longer(run: Run, sku: str) -> str:
    """The recipe with one more step."""
    first = await look(run, sku)
    result = await paid(run, first + await look(run, "tea"))
    await look(run, "receipt")
    return result


@recipe("buy", version="1")
async def shorter(run: Run, sku: str) -> str:
    """The recipe with a step less."""
    return await paid(run, await look(run, sku) + 3)


@recipe("buy", version="1")
async def swapped(run: Run, sku: str) -> str:
    """The recipe in another order."""
    second = await look(run, "tea")
    return await paid(run, await look(run, sku) + second)


@recipe("buy", version="1")
async def otherwise(run: Run, sku: str) -> str:
    """The recipe with another result."""
    first = await look(run, sku)
    return (await paid(run, first + await look(run, "tea"))).upper()


CHANGES: Final[dict[str, Recipe[..., Any]]] = {
    "other words, the same steps": reworded,
    "another `version`": raised,
    "a parameter with a default": optional,
    "a parameter without one": required,
    "other arguments of a step": argued,
    "another tool in a step": elsewhere,
    "a step more": longer,
    "a step less": shorter,
    "two steps in another order": swapped,
    "another result": otherwise,
}


async def golden() -> Golden:
    """The recipe as it was, recorded."""
    async with Remit(":memory:", tools=[price, other, pay], recipes=[recorded], policy=[ALLOWED]) as remit:
        job = await remit.service.jobs.start_named("buy", {"sku": "milk"})
        await remit.ended(job)
        found: Golden = await remit.service.golden.export(job)
        return found


async def checked(one: Golden, now: Recipe[..., Any], policy: str, load: Callable[..., Any]) -> Checked:
    """What check says of it, with this recipe under this policy."""
    settings = load({"journal.url": ":memory:", "jobs.mismatch": policy, "policy.rules": [ALLOWED]})
    async with Remit(settings=settings, tools=[price, other, pay], recipes=[now], work=False) as remit:
        (found,) = (await remit.service.golden.check([one])).jobs
        assert isinstance(found, Checked)
        return found


@recipe("buying", version="1")
async def buying(run: Run) -> Any:
    """Call the tool that changes."""
    return (await run.call("shop.pay", {"amount": 5})).value


FREE: Final = {"effect": "allow", "tools": ["shop.*"]}


async def golden_of_tool() -> Golden:
    """A job that called the tool as it was."""
    async with Remit(":memory:", tools=[made(pay_as_it_was)], recipes=[buying], policy=[FREE]) as remit:
        job = await remit.service.jobs.start_named("buying", {})
        await remit.ended(job)
        found: Golden = await remit.service.golden.export(job)
        return found


async def checked_with(one: Golden, changed: Any, policy: str) -> Checked:
    """What check says of it, with this tool under this policy."""
    settings = loaded({"journal.url": ":memory:", "jobs.mismatch": policy, "policy.rules": [FREE]})
    tools = [changed] if changed is not None else []
    async with Remit(settings=settings, tools=tools, recipes=[buying], work=False) as remit:
        (found,) = (await remit.service.golden.check([one])).jobs
        assert isinstance(found, Checked)
        return found


async def tool_table() -> list[str]:
    """The rows of the table of tools."""
    one, rows = await golden_of_tool(), []
    for words, changed in TOOLS.items():
        found = [await checked_with(one, changed(), policy) for policy in POLICIES]
        rows.append(f"| {words} | " + " | ".join(_said(each) for each in found) + " |")
    return rows


def loaded(flags: dict[str, Any]) -> Any:
    """Settings without a file."""
    from remit.settings import load  # noqa: PLC0415 - of a name that tests use otherwise

    return load(cwd=Path("/"), file=None, env={}, flags=flags)


async def table() -> list[str]:
    """The rows of the table."""
    one, rows = await golden(), []
    for words, now in CHANGES.items():
        found = [await checked(one, now, policy, loaded) for policy in POLICIES]
        rows.append(f"| {words} | " + " | ".join(_said(each) for each in found) + " |")
    return rows


def _said(found: Checked) -> str:
    codes = [found.code] if found.code else sorted({call.code for call in found.calls})
    if codes:
        return f"{found.result}: `{'`, `'.join(codes)}`"
    return f"{found.result}: differs at {found.divergence.step}" if found.divergence else found.result


async def test_the_page_says_what_check_says() -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition("| changed in the recipe |")[2]
    assert re.findall(r"^\|.+\|$", section, re.MULTILINE)[1:11] == await table()


async def test_the_page_says_what_check_says_of_tools() -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition("| changed in the tool |")[2]
    assert re.findall(r"^\|.+\|$", section, re.MULTILINE)[1 : 1 + len(TOOLS)] == await tool_table()


@pytest.mark.parametrize("policy", POLICIES)
async def test_what_did_not_change_is_the_same_under_every_policy(policy: str) -> None:
    assert (await checked(await golden(), recorded, policy, loaded)).result == "same"


if __name__ == "__main__":
    print("\n".join([*asyncio.run(table()), "", *asyncio.run(tool_table())]))  # noqa: T201 - for the page
