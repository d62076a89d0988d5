"""A tool changed in twelve ways and a recipe in ten: what drift, check and resume say of each under every policy.

`python -m tests.parts.drift.changed` writes the table of docs/versions.md.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, TypedDict

from remit import FunctionTool, Recipe, Remit, Run, recipe, tool
from remit.errors import RunError
from remit.jobs.routes import LackingError
from remit.jobs.state import ENDED
from remit.parts.golden.file import Golden
from remit.parts.golden.noun import CheckedJob
from remit.settings import load
from tests.opened import until, until_waiting

PAGE: Final = Path(__file__).parents[3] / "docs/versions.md"
POLICIES: Final = ("warn", "fail", "migrate")
HEAD: Final = "| changed | drift | check: warn | fail | migrate | resume: warn | fail | migrate |\n" + "|---" * 8 + "|"
Tool = FunctionTool[..., Any]
AnyRecipe = Recipe[..., Any]


class Paid(TypedDict):
    """What the tool returns."""

    paid: int
    currency: str


class More(Paid):
    """The same with a field more."""

    at: str


class Less(TypedDict):
    """The same with a field less."""

    paid: int


Currency = Literal["eur", "usd"]


def made(function: Callable[..., Awaitable[Any]], version: str = "1") -> Tool:
    """The tool that a function is."""
    return tool("shop.pay", level="L1", version=version)(function)


async def pay(amount: int, currency: Currency = "eur") -> Paid:
    """Pay."""
    return {"paid": amount, "currency": currency}


async def reworded(amount: int, currency: Currency = "eur") -> Paid:
    """Pay an amount at once."""
    return await pay(amount, currency)


async def with_note(amount: int, currency: Currency = "eur", note: str = "") -> Paid:
    """Pay."""
    return await pay(amount + len(note) * 0, currency)


async def with_needed_note(amount: int, note: str, currency: Currency = "eur") -> Paid:
    """Pay."""
    return await with_note(amount, currency, note)


async def without_currency(amount: int) -> Paid:
    """Pay."""
    return await pay(amount)


async def in_words(amount: str, currency: Currency = "eur") -> Paid:
    """Pay."""
    return await pay(int(amount), currency)


async def in_parts(amount: float, currency: Currency = "eur") -> Paid:
    """Pay."""
    return await pay(int(amount), currency)


async def in_euros(amount: int, currency: Literal["eur"] = "eur") -> Paid:
    """Pay."""
    return await pay(amount, currency)


async def in_francs(amount: int, currency: Literal["eur", "usd", "chf"] = "eur") -> Paid:
    """Pay."""
    return {"paid": amount, "currency": currency}


async def with_time(amount: int, currency: Currency = "eur") -> More:
    """Pay."""
    return {"paid": amount, "currency": currency, "at": "now"}


async def without_result(amount: int, currency: Currency = "eur") -> Less:
    """Pay."""
    return {"paid": amount + len(currency) * 0}


TOOLS: Final[Mapping[str, Callable[[], Tool | None]]] = {
    "another description": lambda: made(reworded),
    "another version": lambda: made(pay, "2"),
    "an optional argument more": lambda: made(with_note),
    "a required argument more": lambda: made(with_needed_note),
    "an argument less": lambda: made(without_currency),
    "an argument of another type": lambda: made(in_words),
    "an argument of a wider type": lambda: made(in_parts),
    "fewer choices": lambda: made(in_euros),
    "more choices": lambda: made(in_francs),
    "a field of the result more": lambda: made(with_time),
    "a field of the result less": lambda: made(without_result),
    "gone": lambda: None,
}


def buying(*, version: str = "1", migrates: tuple[str, ...] = ()) -> Callable[[Any], AnyRecipe]:
    """The decorator of the recipe."""
    return recipe("buying", version=version, migrates=migrates)


@buying()
async def first(run: Run) -> str:
    await run.call("shop.pay", {"amount": 5})
    return str(await run.wait_signal("go"))


@buying(version="2")
async def numbered(run: Run) -> str:
    await run.call("shop.pay", {"amount": 5})
    return str(await run.wait_signal("go"))


@buying()
async def louder(run: Run) -> str:
    await run.call("shop.pay", {"amount": 5})
    return f"{await run.wait_signal('go')}!"


@buying()
async def longer(run: Run) -> str:
    await run.call("shop.pay", {"amount": 5})
    said = str(await run.wait_signal("go"))
    await run.call("shop.pay", {"amount": 6})
    return said


@buying()
async def earlier(run: Run) -> str:
    await run.call("shop.pay", {"amount": 4})
    await run.call("shop.pay", {"amount": 5})
    return str(await run.wait_signal("go"))


@buying(version="2", migrates=("1",))
async def patched(run: Run) -> str:
    if await run.patched("pays first"):
        await run.call("shop.pay", {"amount": 4})
    await run.call("shop.pay", {"amount": 5})
    return str(await run.wait_signal("go"))


@buying()
async def shorter(run: Run) -> str:
    return str(await run.wait_signal("go"))


@buying()
async def dearer(run: Run) -> str:
    await run.call("shop.pay", {"amount": 50})
    return str(await run.wait_signal("go"))


@buying(version="2", migrates=("1",))
async def migrating(run: Run) -> str:
    await run.call("shop.pay", {"amount": 5})
    return f"{await run.wait_signal('go')} {run.version}"


@buying()
async def asking(run: Run, amount: int) -> str:
    await run.call("shop.pay", {"amount": amount})
    return str(await run.wait_signal("go"))


RECIPES: Final[Mapping[str, AnyRecipe | None]] = {
    "another version alone": numbered,
    "another result": louder,
    "a step more after the last recorded one": longer,
    "a step more before it": earlier,
    "the same, behind `run.patched`": patched,
    "a recorded step less": shorter,
    "other arguments for a recorded step": dearer,
    "`migrates` names the version": migrating,
    "a required parameter more": asking,
    "gone": None,
}


EVERY: Final = (*(("tool", name) for name in TOOLS), *(("recipe", name) for name in RECIPES))


def opened(
    folder: Path | None,
    tools: list[Tool],
    recipes: list[AnyRecipe],
    policy: str = "warn",
    *,
    work: bool = True,
    model: str = "",
) -> Remit:
    """A Remit over the journal in a folder, or in memory."""
    flags: dict[str, Any] = {
        "journal.url": str(folder / "journal.db") if folder is not None else ":memory:",
        "app.principal": "alice",
        "jobs.mismatch": policy,
        "jobs.drain_seconds": 0,
        "models.default": model,
        "policy.rules": [{"id": "all", "effect": "allow", "tools": ["*"]}],
    }
    return Remit(settings=load(env={}, search=False, flags=flags), tools=tools, recipes=recipes, work=work)


async def recorded(folder: Path) -> str:
    """A job that has called its tool and waits."""
    async with opened(folder, [made(pay)], [first]) as remit:
        job = await remit.start(first())
        await until_waiting(remit, job.id)
    return job.id


async def golden() -> Golden:
    """A job like it that has ended, as a golden one."""
    with TemporaryDirectory() as own:
        job = await recorded(Path(own))
        async with opened(Path(own), [made(pay)], [first]) as remit:
            await remit.job(job).signal("go", "done")
            await remit.ended(job)
            exported: Golden = await remit.service.golden.export(job)
            return exported


def now(kind: str, name: str) -> tuple[list[Tool], list[AnyRecipe]]:
    """The tools and the recipes after a change."""
    changed = TOOLS[name]() if kind == "tool" else made(pay)
    code = first if kind == "tool" else RECIPES[name]
    return ([changed] if changed else []), ([code] if code else [])


async def row(folder: Path, job: str, ended: Golden, kind: str, name: str) -> str:
    """The row: what drift says, what check says of a job that ended, and what becomes of one that waits."""
    tools, recipes = now(kind, name)
    async with opened(folder, tools, recipes, work=False) as remit:
        report = await remit.service.drift.report(job)
    drifts = [one.drift for one in report.tools] if kind == "tool" else [one.change for one in report.code]
    said = [await checked(ended, tools, recipes, policy) for policy in POLICIES]
    said += [await _resumed(folder, job, tools, recipes, policy) for policy in POLICIES]
    return f"| {kind}: {name} | {', '.join(drifts) or 'same'} | {' | '.join(said)} |"


async def checked(ended: Golden, tools: list[Tool], recipes: list[AnyRecipe], policy: str) -> str:
    """Say what check says of a golden job."""
    async with opened(None, tools, recipes, policy, work=False) as remit:
        (job,) = (await remit.service.golden.check([ended])).jobs
    assert isinstance(job, CheckedJob)
    codes = [job.code] if job.code else sorted({call.code for call in job.calls})
    if codes:
        return f"{job.result}: `{'`, `'.join(codes)}`"
    return f"{job.result}: differs at {job.divergence.step}" if job.divergence else job.result


async def _resumed(folder: Path, job: str, tools: list[Tool], recipes: list[AnyRecipe], policy: str) -> str:
    if not recipes:
        assert await going_on(folder, job, tools, recipes, policy) == "no"
        return "left to others"  # no worker without the recipe takes it
    with TemporaryDirectory() as own:
        copy = Path(own)
        for path in folder.iterdir():
            shutil.copy(path, copy)
        foretold = await going_on(copy, job, tools, recipes, policy)
        async with opened(copy, tools, recipes, policy) as remit:
            await remit.job(job).signal("go", "done")
            ended = await until(remit, job, lambda row: row.state in ENDED or bool(row.code))
    assert foretold == ("yes" if ended.state == "completed" else "no"), (foretold, ended)
    return "goes on" if ended.state == "completed" else f"`{ended.code}`"


async def going_on(
    folder: Path, job: str, tools: list[Tool], recipes: list[AnyRecipe], policy: str, model: str = ""
) -> str:
    """Say whether a job would go on, as every face that is asked says it."""
    async with opened(folder, tools, recipes, policy, work=False, model=model) as remit:
        drift, audit = await remit.service.drift.report(job), await remit.service.audit.ask(job, today=True)
        try:
            replayed = (await remit.service.jobs.replay(job)).verdict
        except (RunError, LackingError):
            replayed = "diverged"
    (answer,) = {drift.resumes, audit.resumes, "no" if replayed == "diverged" else "yes"}
    return str(answer)


async def table() -> list[str]:
    """Every row."""
    with TemporaryDirectory() as own:
        job, ended = await recorded(Path(own)), await golden()
        return [await row(Path(own), job, ended, kind, name) for kind, name in EVERY]


def write() -> None:
    """Write the table of the page again."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(HEAD)
    after = rest.partition("\n\n")[2]
    PAGE.write_text(f"{before}{HEAD}\n" + "\n".join(asyncio.run(table())) + f"\n\n{after}", encoding="utf-8")


if __name__ == "__main__":
    write()
