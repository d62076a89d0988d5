"""The actions of a reader on a job: each is a form, and the service judges it like any other request."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal

import msgspec

from remit.codes import Code
from remit.errors import NotFoundError, UsageError
from remit.jobs.replay import ReplayReport
from remit.journal.labels import Conditions, conditions
from remit.pages.page import Nothing, Page, PageFile, PageRequest, PageView, See, link
from remit.record.views import ConfirmationView, VerifyReport
from remit.redact import line
from remit.regex import regex
from remit.service.jobs import may_retry

_APART: Final = regex(r",\s*(?=[^<>=,]+[<>=])")


class Cancel(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job is to stop."""

    reason: str = ""


class RetryForm(msgspec.Struct, frozen=True, kw_only=True):
    """From where, and whether side effects may happen again."""

    step: str = ""
    """Run again from there; empty: from where it failed."""
    repeat: Literal["", "yes"] = ""
    reason: str = ""


class SignalForm(msgspec.Struct, frozen=True, kw_only=True):
    """A signal; the payload is JSON, and may be left out."""

    name: str
    payload: str = ""


class StepDecisionForm(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a step whose outcome is unknown."""

    decision: Literal["done", "retry", "fail"]
    attempt: int
    value: str = ""
    """The result of the call, as JSON, if it is `done`."""
    reason: str = ""


class ReplayResult(PageView, frozen=True, kw_only=True):
    """What a replay found."""

    template: ClassVar[str] = "replayed.html"
    report: ReplayReport


class Verified(PageView, frozen=True, kw_only=True):
    """Whether the record holds."""

    template: ClassVar[str] = "verified.html"
    job: str
    report: VerifyReport


async def cancel(request: PageRequest) -> See:
    """Ask a job to stop."""
    job = request.path["job"]
    await request.service.jobs.cancel(job, by=request.principal, reason=request.form.reason)
    return _back(job)


async def resume(request: PageRequest) -> See:
    """Make a job due now, whatever it waits for."""
    job = request.path["job"]
    await request.service.jobs.resume(job)
    return _back(job)


async def retry(request: PageRequest) -> See:
    """Create a job that takes over what this one recorded, and goes on where it failed."""
    form: RetryForm = request.form
    await may_retry(request.service.jobs, request.access, request.path)
    retried = await request.service.jobs.retry(
        request.path["job"], form.step.strip(), repeat=form.repeat == "yes", by=request.principal, reason=form.reason
    )
    return _back(retried.job)


async def signal(request: PageRequest) -> See:
    """Send a job a signal."""
    job, form = request.path["job"], request.form
    await request.service.jobs.signal(job, form.name, json_value(form.payload, "The payload"), by=request.principal)
    return _back(job)


async def decide(request: PageRequest) -> See:
    """Resolve a step."""
    job, form = request.path["job"], request.form
    value = json_value(form.value, "The value") if form.decision == "done" else None
    await request.service.steps.decide(
        job,
        request.path["step"],
        form.decision,
        value,
        attempt=form.attempt,
        by=request.principal,
        reason=form.reason,
    )
    return _back(job)


async def replay(request: PageRequest) -> ReplayResult:
    """Run a job's recipe again on its record alone: nothing is called."""
    report = await request.service.jobs.replay(request.path["job"])
    return ReplayResult(title="Replay", report=report)


async def verify(request: PageRequest) -> Verified:
    """Check that nothing recorded of a job, and of all that belongs to it, was changed."""
    job = request.path["job"]
    report = await request.service.streams.verify(job)
    title = "The record was changed" if report.problems else "The record holds"
    return Verified(title=title, job=job, report=report)


async def kept(request: PageRequest) -> PageFile:
    """A value that is too large for a page: a job's input or result, a step's arguments or value."""
    job, what = request.path["job"], request.path["what"]
    view = await request.service.jobs.view(job)
    values = {"input": view.input, "result": view.result}
    if what not in values:
        raise NotFoundError("There is no such value.", code=Code.PATH_UNKNOWN)
    return PageFile(f"{job}-{what}.json", _saved(values[what]))


async def kept_of_step(request: PageRequest) -> PageFile:
    """The same of a step: its arguments or its value."""
    job, step, what = (request.path[name] for name in ("job", "step", "what"))
    view = await request.service.steps.view(job, step)
    args = view.args if view.args is not None else wanted(await request.service.confirmations.pending(job), step)
    values = {"args": args, "value": view.value}
    if what not in values:
        raise NotFoundError("There is no such value.", code=Code.PATH_UNKNOWN)
    return PageFile(f"{job}-{step}-{what}.json", _saved(values[what]))


def wanted(questions: list[ConfirmationView], step: str) -> Any:
    """Return what a step that asks would be given: its job has not recorded that yet. None for any other step."""
    return next((question.args for question in questions if question.step == step and question.tool), None)


def _saved(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2)


def _back(job: str) -> See:
    return See(link("/jobs/{}", job))


_ONE: Final = "/jobs/{job}"

PAGES: Final = (
    Page(path=f"{_ONE}/cancel", scope="decide", handler=cancel, form=Cancel),
    Page(path=f"{_ONE}/resume", scope="decide", handler=resume, form=Nothing),
    Page(path=f"{_ONE}/retry", scope="call", handler=retry, form=RetryForm),
    Page(path=f"{_ONE}/signal", scope="decide", handler=signal, form=SignalForm),
    Page(path=f"{_ONE}/steps/{{step}}/decide", scope="decide", handler=decide, form=StepDecisionForm),
    Page(path=f"{_ONE}/replay", scope="read", handler=replay, form=Nothing),
    Page(path=f"{_ONE}/verify", scope="read", handler=verify, form=Nothing),
    Page(path=f"{_ONE}/kept/{{what}}", scope="read", handler=kept),
    Page(path=f"{_ONE}/steps/{{step}}/kept/{{what}}", scope="read", handler=kept_of_step),
)


def json_value(text: str, what: str) -> Any:
    """The value of a field; nothing stands for null. Raises UsageError."""
    if not text.strip():
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        remedy = 'Text stands in quotes: "done".'
        raise UsageError(f"{what} is not JSON: {line(str(error))}", code=Code.INVALID_INPUT, remedy=remedy) from error


def json_object(text: str, what: str) -> dict[str, Any]:
    """Names and values; nothing stands for none. Raises UsageError."""
    value = json_value(text, what)
    if value is None:
        return {}
    if not isinstance(value, dict):
        remedy = 'Write {"name": value}.'
        raise UsageError(f"{what} must be a JSON object.", code=Code.INVALID_INPUT, remedy=remedy)
    return value


def label_conditions(text: str) -> Conditions:
    """Return the conditions on labels in a text, with commas between them. Raises UsageError."""
    return conditions(_APART.split(text) if text else ())


def labels(text: str) -> dict[str, str]:
    """The label KEY=VALUE; nothing stands for none. Raises UsageError."""
    if not text:
        return {}
    key, separator, value = text.partition("=")
    if not (key and separator):
        raise UsageError(f"{text!r:.80} is not KEY=VALUE.", code=Code.INVALID_INPUT)
    return {key: value}
