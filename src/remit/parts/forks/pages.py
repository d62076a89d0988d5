"""Pages: run a step again with something changed, and two runs beside each other."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal

import msgspec

from remit.codes import Code
from remit.errors import UsageError
from remit.pages.page import Nothing, Page, PageRequest, PageView, See, link, written
from remit.parts.forks.diff import RunDiff
from remit.parts.forks.forks import may_fork
from remit.record.views import JobRow

_OTHERS: Final = 20
"""Runs of the same recipe that are offered."""


class ForkForm(PageView, frozen=True, kw_only=True):
    """The parts of a step and of the job that can be changed."""

    template: ClassVar[str] = "fork.html"
    job: str
    step: str
    name: str
    input: str
    args: str
    """As JSON; empty: it is no call."""
    tool: str
    model: str


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a fork; a text that is left as it was changes nothing."""

    input: str = ""
    args: str = ""
    result: str = ""
    tool: str = ""
    model: str = ""
    repeat: Literal["", "yes"] = ""
    reason: str = ""


class With(msgspec.Struct, frozen=True, kw_only=True):
    """The other run."""

    other: str = ""
    every: Literal["", "yes"] = ""


class Compared(PageView, frozen=True, kw_only=True):
    """Two runs, compared; or the choice of the other one."""

    template: ClassVar[str] = "compare.html"
    job: str
    query: With
    others: tuple[JobRow, ...]
    diff: RunDiff | None


async def form(asked: PageRequest) -> ForkForm:
    """The form. Raises NotFoundError."""
    job, step = asked.path["job"], asked.path["step"]
    view = await asked.service.jobs.view(job)
    step_view = await asked.service.steps.view(job, step)
    name = step_view.row.name
    return ForkForm(
        title=f"Run {step} again",
        job=job,
        step=step,
        name=name.removeprefix("tool."),
        input=written(view.input or {}),
        args=written(step_view.args) if name.startswith("tool.") and isinstance(step_view.args, dict) else "",
        tool=name.removeprefix("tool.") if name.startswith("tool.") else "",
        model=name.removeprefix("model.") if name.startswith("model.") else "",
    )


async def fork(asked: PageRequest) -> See:
    """Create the fork, and go to it."""
    job, step, given = asked.path["job"], asked.path["step"], asked.form
    await may_fork(asked.service.forks, asked.access, asked.path)
    before = await form(asked)
    changes: dict[str, Any] = {}
    if given.input and _object(given.input, "The input") != _object(before.input, "The input"):
        changes["input"] = _object(given.input, "The input")
    if before.args and given.args and _object(given.args, "The arguments") != _object(before.args, "The arguments"):
        changes["args"] = {step: _object(given.args, "The arguments")}
    if given.result.strip():
        changes["results"] = {step: _json(given.result, "The result")}
    if before.tool and given.tool.strip() not in {"", before.tool}:
        changes["tools"] = {before.tool: given.tool.strip()}
    if before.model and given.model.strip() not in {"", before.model}:
        changes["models"] = {before.model: given.model.strip(), "": given.model.strip()}
    child = await asked.service.forks.make(
        job, step, **changes, repeat=given.repeat == "yes", by=asked.principal, reason=given.reason
    )
    return See(link("/jobs/{}", child.job))


async def compare(asked: PageRequest) -> Compared:
    """Two runs beside each other. Raises NotFoundError."""
    job, query = asked.path["job"], asked.query
    row = await asked.service.jobs.row(job)
    rows = await asked.service.jobs.rows(labels={"remit.name": row.name}, limit=_OTHERS)
    other = await asked.service.jobs.find(query.other.strip()) if query.other.strip() else ""
    diff = await asked.service.forks.diff(job, other, every=query.every == "yes") if other else None
    others = tuple(one for one in rows if one.job != job)
    return Compared(title="Compare", job=job, query=query, others=others, diff=diff)


def _json(text: str, what: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        reason = f"{what} is not JSON: {error}"
        raise UsageError(reason, code=Code.FORK_INVALID, remedy="Put text in quotes.") from error


def _object(text: str, what: str) -> dict[str, Any]:
    value = _json(text, what)
    if not isinstance(value, dict):
        raise UsageError(f"{what} is not a JSON object", code=Code.FORK_INVALID, remedy='Write {"name": value}.')
    return value


PAGES: Final = (
    Page(
        path="/jobs/{job}/steps/{step}/fork",
        scope="call",
        handler=form,
        name="Run again from here with …",
        of="step",
        query=Nothing,
    ),
    Page(path="/jobs/{job}/steps/{step}/fork", scope="call", handler=fork, form=Fork),
    Page(path="/jobs/{job}/compare", scope="read", handler=compare, name="Compare", of="job", query=With),
)
