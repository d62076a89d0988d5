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


async def form(request: PageRequest) -> ForkForm:
    """The form. Raises NotFoundError."""
    job, step = request.path["job"], request.path["step"]
    view = await request.service.jobs.view(job)
    step_view = await request.service.steps.view(job, step)
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


async def fork(request: PageRequest) -> See:
    """Create the fork, and go to it."""
    job, step, filled = request.path["job"], request.path["step"], request.form
    await may_fork(request.service.forks, request.access, request.path)
    before = await form(request)
    changes: dict[str, Any] = {}
    if filled.input and _object(filled.input, "The input") != _object(before.input, "The input"):
        changes["input"] = _object(filled.input, "The input")
    if before.args and filled.args and _object(filled.args, "The arguments") != _object(before.args, "The arguments"):
        changes["args"] = {step: _object(filled.args, "The arguments")}
    if filled.result.strip():
        changes["results"] = {step: _json(filled.result, "The result")}
    if before.tool and filled.tool.strip() not in {"", before.tool}:
        changes["tools"] = {before.tool: filled.tool.strip()}
    if before.model and filled.model.strip() not in {"", before.model}:
        changes["models"] = {before.model: filled.model.strip(), "": filled.model.strip()}
    child = await request.service.forks.make(
        job, step, **changes, repeat=filled.repeat == "yes", by=request.principal, reason=filled.reason
    )
    return See(link("/jobs/{}", child.job))


async def compare(request: PageRequest) -> Compared:
    """Two runs beside each other. Raises NotFoundError."""
    job, query = request.path["job"], request.query
    row = await request.service.jobs.row(job)
    rows = await request.service.jobs.rows(labels={"remit.name": row.name}, limit=_OTHERS)
    other = await request.service.jobs.find(query.other.strip()) if query.other.strip() else ""
    diff = await request.service.forks.diff(job, other, every=query.every == "yes") if other else None
    others = tuple(each for each in rows if each.job != job)
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
