"""A question: the exact call, what it would do, why it is asked and by whom, and the forms to answer it."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable
from typing import ClassVar, Final, Literal, TypeVar

import msgspec

from remit.codes import Code
from remit.errors import NotFoundError, RemitError, UsageError
from remit.gateway.proof import ProofKind
from remit.pages.fields import Field, args_of, fields_of
from remit.pages.inbox import hindrance
from remit.pages.page import DiffLine, Page, PageRequest, PageView, See, changes_of, link, written
from remit.record.step import Decided, QuestionRecord
from remit.record.views import ConfirmationView, ToolView
from remit.tools.provider import Preview

T = TypeVar("T")
_LOST: Final = {Code.CONFIRMATION_CLOSED, Code.CONFIRMATION_EXPIRED, Code.CONFIRMATION_MISMATCH}
"""The codes with which an answer is refused because someone or something was faster."""
_DIFF: Final = 4_000
"""Lines of arguments up to which an edit is shown as a difference."""
_LEVELS: Final = {
    "L0": "It only reads.",
    "L1": "It writes: something is different afterwards.",
    "L2": "It executes code or reaches the network.",
}
ENDS: Final = {"used": "approved and done", "approved": "approved, and not used"}
"""Ends of questions in words, where the state does not say it all."""
_HOUR_S: Final = 3_600
_PERIODS: Final = (
    (_HOUR_S, "1 hour"),
    (8 * _HOUR_S, "8 hours"),
    (24 * _HOUR_S, "1 day"),
    (7 * 24 * _HOUR_S, "7 days"),
    (30 * 24 * _HOUR_S, "30 days"),
)


class QuestionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer: to what was shown, which the digest says."""

    digest: str
    reason: str = ""


class TakeBackForm(msgspec.Struct, frozen=True, kw_only=True):
    """Why an approval is taken back."""

    reason: str = ""


class Remember(msgspec.Struct, frozen=True, kw_only=True):
    """An approval that holds for later calls too."""

    digest: str
    scope: Literal["job", "session", "everything"]
    seconds: int
    exact: Literal["yes", "no"] = "yes"
    reason: str = ""


class EditForm(msgspec.Struct, frozen=True, kw_only=True):
    """Other arguments, field by field."""

    name: tuple[str, ...] = ()
    value: tuple[str, ...] = ()
    reason: str = ""


class EarlierQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question about the same tool for the same person that is over."""

    question: ConfirmationView
    words: str
    """Its end, and by whom."""
    at: int
    """When."""
    reason: str
    same: bool
    """Whether it was about the very same call."""
    other: bool
    """Whether the tool was another one than now."""


class Trial(msgspec.Struct, frozen=True):
    """A remembered approval, tested against the call that is asked about."""

    exact: Literal["yes", "no"]
    reason: str
    """Why the same call would be asked about again; empty: it would run."""


class QuestionView(PageView, frozen=True, kw_only=True):
    """One question, whole."""

    template: ClassVar[str] = "question.html"
    question: ConfirmationView
    record: QuestionRecord
    job: str
    """The job that waits; empty for a call from elsewhere."""
    args: str
    """The arguments, exactly and whole."""
    lines: int
    defaults: str
    """The defaults that the tool puts in for what they leave out, by place; empty where nothing is left out, or that is
    unknown.
    """
    preview: Preview | None
    """The change that the call would make now; None where its tool cannot say."""
    diff: tuple[DiffLine, ...]
    """That change line by line, whole; empty where there is nothing to compare."""
    effect: tuple[str, ...]
    """Sentences: what the call would do."""
    version: str
    """The tool's version today."""
    changed: bool
    """Whether the tool is another one than the question was asked about."""
    changes: tuple[DiffLine, ...]
    """The edits."""
    fields: tuple[Field, ...]
    trials: tuple[Trial, ...]
    """The effect of a remembered approval on this very call."""
    hindrance: str
    open: bool
    revocable: bool
    """Whether the reader may take its approval back, as far as a page knows."""
    lost: str
    """Why the reader's answer did not count."""
    last: Decided | None
    earlier: tuple[EarlierQuestion, ...]
    others: tuple[str, ...]
    """Others who may answer, where that is limited."""
    periods: tuple[tuple[int, str], ...] = _PERIODS


async def question(request: PageRequest) -> QuestionView:
    """The question's page. Raises NotFoundError."""
    return await _view(request)


async def approve(request: PageRequest) -> QuestionView | See:
    """Approve the call that was shown."""
    return await _decide(request, "approve")


async def deny(request: PageRequest) -> QuestionView | See:
    """Deny the call; the reason reaches the caller."""
    return await _decide(request, "deny")


async def remember(request: PageRequest) -> QuestionView | See:
    """Approve the call, and let that hold for later ones within bounds."""
    form: Remember = request.form
    if form.seconds not in {seconds for seconds, _ in _PERIODS}:
        raise UsageError("Choose how long it holds.", code=Code.INVALID_INPUT)
    name = request.path["confirmation"]
    remembering = request.service.approvals.remember(
        name,
        form.scope,
        seconds=form.seconds,
        exact=form.exact == "yes",
        digest=form.digest,
        by=request.principal,
        reason=form.reason,
        proof=_proof(request),
    )
    return await _answered(request, remembering, lambda _: link("/inbox", done=name))


async def revoke(request: PageRequest) -> QuestionView | See:
    """Take back an approval that no call has used."""
    name = request.path["confirmation"]
    revoking = request.service.confirmations.revoke(name, by=request.principal, reason=request.form.reason)
    return await _answered(request, revoking, lambda _: link("/inbox/{}", name))


async def edit(request: PageRequest) -> QuestionView | See:
    """Replace the question by one with other arguments, still to be approved."""
    form: EditForm = request.form
    confirmations = request.service.confirmations
    view = await confirmations.view(request.path["confirmation"])
    tool = await _tool(request, view)
    args = args_of(form.name, form.value, view.args, tool.input_schema if tool else None)
    if args == view.args:
        raise UsageError("Nothing was changed.", code=Code.INVALID_INPUT, remedy="Go back and change an argument.")
    editing = confirmations.edit(view.confirmation, args, by=request.principal, reason=form.reason)
    return await _answered(request, editing, lambda edited: link("/inbox/{}", edited.confirmation))


async def _decide(request: PageRequest, decision: Literal["approve", "deny"]) -> QuestionView | See:
    name, form = request.path["confirmation"], request.form
    deciding = request.service.confirmations.decide(
        name, decision, digest=form.digest, by=request.principal, reason=form.reason, proof=_proof(request)
    )
    return await _answered(request, deciding, lambda _: link("/inbox", done=name))


async def _answered(request: PageRequest, act: Awaitable[T], to: Callable[[T], str]) -> QuestionView | See:
    """Act on the question and see what follows; or the question again, if it is no longer what was answered."""
    try:
        return See(to(await act))
    except RemitError as error:
        if error.code not in _LOST:
            raise
        return await _view(request, error)


def _proof(request: PageRequest) -> ProofKind:
    return "token" if request.access.principal else ""


async def _view(request: PageRequest, error: RemitError | None = None) -> QuestionView:
    confirmations = request.service.confirmations
    view = await confirmations.view(request.path["confirmation"])
    answers = await confirmations.answers(view.confirmation)
    tool = await _tool(request, view)
    args = written(view.args)
    lapsed = view.expires_at is not None and view.expires_at <= request.now
    still = view.state == "pending" and not lapsed
    preview = await confirmations.preview(view.confirmation) if still else None
    kind, _, job = view.caller.partition("/")
    return QuestionView(
        title=heading(view),
        status=error.code.http if error is not None else 200,
        question=view,
        record=answers,
        job=job if kind == "job" else "",
        args=args,
        lines=args.count("\n") + 1,
        defaults=written(view.defaults) if view.defaults else "",
        preview=preview,
        diff=changes_of(preview.diff) if preview is not None else (),
        effect=_effect(tool),
        version=tool.version if tool else "",
        changed=bool(tool and view.contract_hash and tool.contract_hash != view.contract_hash),
        changes=await _changes(request, view, args),
        fields=fields_of(view.args, tool.input_schema) if tool and isinstance(view.args, dict) else (),
        trials=await _trials(request, view) if view.state == "pending" and view.tool else (),
        hindrance=hindrance(view, request.access),
        open=still,
        revocable=view.state == "approved" and bool(view.tool) and request.access.allows("decide"),
        lost=error.message if error is not None else "",
        last=answers.decisions[-1] if answers.decisions else None,
        earlier=await _earlier(request, view) if still else (),
        others=tuple(approver for approver in view.approvers if approver != request.principal),
    )


async def _earlier(request: PageRequest, view: ConfirmationView) -> tuple[EarlierQuestion, ...]:
    """Return earlier questions about this tool, and how they ended."""
    confirmations = request.service.confirmations
    lines = []
    for earlier in await confirmations.earlier(view):
        answers = (await confirmations.answers(earlier.confirmation)).decisions
        last = answers[-1] if answers else None
        by = f" by {last.by}" if last is not None and last.by else ""
        lines.append(
            EarlierQuestion(
                question=earlier,
                words=f"{ENDS.get(earlier.state, earlier.state)}{by}",
                at=last.at if last is not None else earlier.asked_at,
                reason=last.reason if last is not None else "",
                same=earlier.args == view.args,
                other=earlier.contract_hash != view.contract_hash,
            )
        )
    return tuple(lines)


def heading(question: ConfirmationView) -> str:
    """The question itself: that of a recipe word by word, that of a call as one."""
    if question.tool:
        return f"May {question.principal or 'somebody'} call {question.tool}?"
    return question.question or "May it go on?"


async def _trials(request: PageRequest, view: ConfirmationView) -> tuple[Trial, ...]:
    try_, name = request.service.approvals.tried, view.confirmation
    return (
        Trial("yes", await try_(name, exact=True, by=request.principal)),
        Trial("no", await try_(name, exact=False, by=request.principal)),
    )


async def _tool(request: PageRequest, view: ConfirmationView) -> ToolView | None:
    """The tool as it is today; None if it is gone, or only an answer is asked for."""
    if not view.tool:
        return None
    try:
        return await request.service.tools.view(view.tool)
    except NotFoundError:
        return None


async def _changes(request: PageRequest, view: ConfirmationView, args: str) -> tuple[DiffLine, ...]:
    if not view.edited_from:
        return ()
    before = written((await request.service.confirmations.view(view.edited_from)).args).split("\n")
    after = args.split("\n")
    if len(before) + len(after) > _DIFF:
        return ()
    lines = [each for each in difflib.ndiff(before, after) if not each.startswith("?")]
    return tuple(DiffLine("+" if each[0] == "+" else "-" if each[0] == "-" else " ", each[2:]) for each in lines)


def _effect(tool: ToolView | None) -> tuple[str, ...]:
    if tool is None:
        return ()
    if tool.capability_level == "L0" or not tool.side_effects:
        return (_LEVELS["L0"],)
    again = "Done twice, it changes nothing more." if tool.idempotent else "Done twice, it happens twice."
    return (_LEVELS.get(tool.capability_level, ""), again)


_ONE: Final = "/inbox/{confirmation}"

PAGES: Final = (
    Page(path=_ONE, scope="read", handler=question, live="heads"),
    Page(path=f"{_ONE}/approve", scope="decide", handler=approve, form=QuestionAnswer),
    Page(path=f"{_ONE}/deny", scope="decide", handler=deny, form=QuestionAnswer),
    Page(path=f"{_ONE}/remember", scope="decide", handler=remember, form=Remember),
    Page(path=f"{_ONE}/revoke", scope="decide", handler=revoke, form=TakeBackForm),
    Page(path=f"{_ONE}/edit", scope="decide", handler=edit, form=EditForm),
)
