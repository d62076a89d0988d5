"""Confirmations: questions to people, and their answers.

Many questions at once: what tells them apart, and the same answer to each, bound to its own digest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec

from remit.codes import Code
from remit.errors import NotFoundError, RemitError, UsageError
from remit.gateway.confirmation import KIND
from remit.gateway.previews import Defaults, preview_of
from remit.gateway.proof import ProofKind, signed, statement
from remit.jobs.state import KIND as JOB
from remit.jobs.state import stream_of
from remit.journal.event import HeadQuery
from remit.journal.kinds import ConfirmationDecided, ConfirmationPutOff
from remit.journal.kinds.people import Via
from remit.operation import Body, By, JsonObject, WireName, operation
from remit.record.question import read_question
from remit.record.step import QuestionRecord
from remit.record.views import ConfirmationView, job_row
from remit.tools.provider import Preview

if TYPE_CHECKING:
    from pathlib import Path

    from remit.gateway.confirmation import Confirmation
    from remit.gateway.services import Services
    from remit.journal.event import StreamHead


_PROBLEMS = 5
ONE: Final = "/v1/confirmations/{confirmation}"
CLOSED: Final = (
    Code.CONFIRMATION_NOT_FOUND,
    Code.CONFIRMATION_CLOSED,
    Code.CONFIRMATION_EXPIRED,
    Code.CONFIRMATION_MISMATCH,
    Code.DECIDER_NOT_ALLOWED,
)
"""Codes with which an answer is refused."""
REVOKE: Final = Body("RevokeBody", "Why an approval, or a remembered one, ends.")
Reference = Annotated[str, WireName("confirmation")]
_OVER = ("approved", "denied", "expired", "replaced", "withdrawn", "used")
"""The states of questions that can no longer be answered."""
_ALIKE: Final = 20
"""Questions that are looked at for earlier ones about the same tool."""


class QuestionFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which questions; every condition has to hold."""

    tool: str = ""
    """The full name of the tool that is asked about."""
    recipe: str = ""
    """The recipe or plan of the job that asks."""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    """Labels of the job that asks."""
    principal: str = ""
    """The principal in whose name is asked."""

    def of(self, questions: Iterable[ConfirmationView]) -> list[ConfirmationView]:
        """Return those that fit, in their order."""
        return [question for question in questions if self._fits(question)]

    def _fits(self, question: ConfirmationView) -> bool:
        same = (
            self.tool in {"", question.tool}
            and self.recipe in {"", question.recipe}
            and self.principal in {"", question.principal}
        )
        return same and self.labels.items() <= question.labels.items()


class ConfirmationsNoun:
    """The questions of one journal."""

    def __init__(self, services: Services, principal: str, wake: Callable[[], None]) -> None:
        self._services = services
        self._journal = services.journal
        self._principal = principal
        self._wake = wake

    # --- queries

    async def pending(
        self,
        job: str | None = None,
        *,
        only: QuestionFilter | None = None,
        limit: int | None = None,
        after: str = "",
        described: bool = True,
    ) -> list[ConfirmationView]:
        """Open questions, oldest first, those after `after`; not those of jobs that have ended.

        No more are read than `limit` needs. Unless they are to be `described`, their tools are not looked up, and
        `defaults` is None. Raises NotFoundError if `after` is no question's identifier.
        """
        confirmations: list[ConfirmationView] = []
        callers: dict[str, StreamHead | None] = {}
        defaults = Defaults(self._services.catalog) if described else None
        async for question in self._services.confirmations.each_pending(stream_of(job) if job else None, after):
            if question.caller not in callers:
                callers[question.caller] = await self._journal.head(question.caller)
            head = callers[question.caller]
            if head is None or not head.closed:
                view = await self._view(question, head, defaults)
                confirmations += [view] if only is None else only.of([view])
            if limit is not None and len(confirmations) >= limit:
                break
        return confirmations

    @operation("confirmations.view", f"GET {ONE}", "read", "Show a question.", codes=(Code.CONFIRMATION_NOT_FOUND,))
    async def view(self, reference: Reference) -> ConfirmationView:
        """Show a question: the exact call, its digest, who asks and who has approved.

        `reference` is its identifier, or an ending of it that fits only one open question. Raises NotFoundError.
        """
        return await self._shown(await self._services.confirmations.find(reference))

    async def answered(self, *, limit: int = 20) -> list[ConfirmationView]:
        """The newest questions that can no longer be answered, whatever their end, newest first."""
        query = HeadQuery(kind=KIND, states=_OVER, limit=limit)
        confirmations = [
            await self._services.confirmations.load(head.stream) for head in await self._journal.heads(query)
        ]
        defaults = Defaults(self._services.catalog)
        return [
            await self._view(confirmation, await self._journal.head(confirmation.caller), defaults)
            for confirmation in confirmations
            if confirmation is not None
        ]

    async def earlier(self, question: ConfirmationView, *, limit: int = 5) -> list[ConfirmationView]:
        """Questions about the same tool, for the same principal, that are over; newest first."""
        of = {"principal": question.principal}
        query = HeadQuery(kind=KIND, states=_OVER, labels=of, text=question.tool, limit=_ALIKE)
        confirmations: list[ConfirmationView] = []
        for head in await self._journal.heads(query) if question.tool else ():
            confirmation = await self._services.confirmations.load(head.stream)
            if (
                confirmation is not None
                and confirmation.request.tool_name == question.tool
                and len(confirmations) < limit
            ):
                confirmations.append(
                    await self._view(confirmation, await self._journal.head(confirmation.caller), None)
                )
        return confirmations

    async def answers(self, reference: str) -> QuestionRecord:
        """A question with every answer to it: who gave it, when and why. Raises NotFoundError."""
        confirmation = await self._services.confirmations.find(reference)
        question = read_question(confirmation.id, await self._journal.read(confirmation.stream))
        if question is None:
            raise NotFoundError(f"{reference!r} is not the id of a confirmation", code=Code.CONFIRMATION_NOT_FOUND)
        return question[1]

    @operation(
        "confirmations.preview",
        f"GET {ONE}/preview",
        "decide",
        "Show what a call would change.",
        codes=(Code.CONFIRMATION_NOT_FOUND,),
    )
    async def preview(self, reference: Reference) -> Preview | None:
        """Show what the call would change as things are now, such as a file's diff; null if its tool cannot say.

        Raises NotFoundError.
        """
        confirmation = await self._services.confirmations.find(reference)
        return await preview_of(self._services.catalog, confirmation)

    # --- commands

    async def put_off(self, reference: str, answer: ConfirmationPutOff) -> None:
        """Record that a client to which a question was put decided nothing. Raises NotFoundError."""
        await self._services.confirmations.put_off(await self._services.confirmations.find(reference), answer)

    async def decided(self, reference: str) -> None:
        """Wait until a question is open no more, wherever it is answered. Raises NotFoundError."""
        mark = await self._journal.heads_changed(0)
        while (await self._services.confirmations.find(reference)).state == "pending":
            mark = await self._journal.heads_changed(mark)

    async def decide(
        self,
        reference: str,
        decision: Literal["approve", "deny"],
        *,
        digest: str | None = None,
        by: str = "",
        reason: str = "",
        proof: ProofKind = "",
        sign: Path | None = None,
    ) -> ConfirmationView:
        """Approve or deny a call. `digest` is the one that was shown; without it, the newest is taken as seen.

        `proof` says how the answer was given; with `sign`, an SSH key, it is signed.

        Raises NotFoundError, StateError or UsageError.
        """
        question = await self._services.confirmations.find(reference)
        answer = ConfirmationDecided(
            confirmation=question.id,
            decision=decision,
            digest=question.request.digest if digest is None else digest,
            by=by or self._principal,
            reason=reason,
            proof=proof,
        )
        answer = await signed_with(answer, sign)
        decided = await self._services.confirmations.decide(question, answer)
        self._wake()
        return await self._shown(decided)

    async def decide_on_channel(
        self,
        reference: str,
        decision: Literal["approve", "deny"],
        *,
        digest: str,
        by: str,
        via: Via,
        body: bytes,
        reason: str = "",
    ) -> ConfirmationView:
        """Approve or deny a call as a person answered on a channel: `via` says which, and `body` is what that sent.

        Raises as `decide` does.
        """
        confirmation = await self._services.confirmations.find(reference)
        answer = ConfirmationDecided(
            confirmation=confirmation.id,
            decision=decision,
            digest=digest,
            by=by,
            reason=reason,
            proof="channel",
            via=via,
        )
        decided = await self._services.confirmations.decide(confirmation, answer, body)
        self._wake()
        return await self._shown(decided)

    @operation(
        "confirmations.revoke",
        f"POST {ONE}/revoke",
        "decide",
        "Take back an approval.",
        body=REVOKE,
        codes=(Code.CONFIRMATION_NOT_FOUND, Code.CONFIRMATION_CLOSED, Code.DECIDER_NOT_ALLOWED),
        example={"reason": "the wrong account"},
    )
    async def revoke(self, reference: Reference, *, by: By = "", reason: str = "") -> ConfirmationView:
        """Take back an approval that no call has used; the call asks again.

        Raises as `decide` does.
        """
        question = await self._services.confirmations.find(reference)
        revoked = await self._services.confirmations.revoke(question, by or self._principal, reason)
        self._wake()
        return await self._shown(revoked)

    @operation(
        "confirmations.edit",
        f"POST {ONE}/edit",
        "decide",
        "Ask about other arguments instead.",
        body=Body("EditBody", "Other arguments for the call, which then has to be approved in its own right."),
        codes=(*CLOSED, Code.INVALID_TOOL_ARGS, Code.NOT_CANONICAL),
        invalid=Code.INVALID_TOOL_ARGS,
        example={"args": {"path": "notes.md", "content": "shorter"}},
    )
    async def edit(self, reference: Reference, args: JsonObject, *, by: By = "", reason: str = "") -> ConfirmationView:
        """Replace the question by one with other arguments, still to be approved.

        Raises NotFoundError, StateError or UsageError.
        """
        question = await self._services.confirmations.find(reference)
        tool = await self._services.catalog.find(question.request.tool_name)
        if tool is None or not isinstance(args, dict):
            msg = f"{question.id} asks about no tool's arguments" if tool is None else "arguments are a JSON object"
            raise UsageError(msg, code=Code.INVALID_TOOL_ARGS)
        problems = tool.input.problems(args)
        if problems:
            text = "; ".join(f"{problem.path or '/'} {problem.message}" for problem in problems[:_PROBLEMS])
            raise UsageError(f"{tool.meta.name}: {text}", code=Code.INVALID_TOOL_ARGS, remedy="Edit them again.")
        edited = await self._services.confirmations.edit(question, args, by or self._principal, reason)
        return await self._shown(edited)

    async def _shown(self, confirmation: Confirmation) -> ConfirmationView:
        return await self._view(
            confirmation, await self._journal.head(confirmation.caller), Defaults(self._services.catalog)
        )

    async def _view(
        self, confirmation: Confirmation, caller: StreamHead | None, defaults: Defaults | None
    ) -> ConfirmationView:
        view = _view(confirmation, caller, remembered=self._services.remembered.count)
        found_deputies = self._services.confirmations.deputies(confirmation.request).items()
        stand_ins = {deputy: absent for deputy, absent in found_deputies if deputy not in view.approvers}
        tool_defaults = await defaults.of(confirmation) if defaults is not None else None
        return msgspec.structs.replace(view, defaults=tool_defaults, stand_ins=stand_ins)


async def signed_with(answer: ConfirmationDecided, key: Path | None) -> ConfirmationDecided:
    """An answer with its signature under an SSH key, if one is named. Raises UsageError."""
    if key is None:
        return answer
    text = statement(answer.confirmation, answer.digest, answer.decision, answer.by, answer.remember)
    return msgspec.structs.replace(answer, signature=await signed(text, key))


def _view(confirmation: Confirmation, caller: StreamHead | None, *, remembered: bool) -> ConfirmationView:
    """A confirmation as faces show it; `remembered`: whether approvals are remembered here."""
    request = confirmation.request
    job = job_row(caller) if caller is not None and caller.kind == JOB else None
    return ConfirmationView(
        confirmation=confirmation.id,
        state=confirmation.state,
        caller=confirmation.caller,
        step=request.step,
        tool=request.tool_name,
        question=request.question,
        args=confirmation.args,
        digest=request.digest,
        contract_hash=request.contract_hash,
        capability_level=f"L{request.capability_level}" if request.provider_id else "",
        provider_id=request.provider_id,
        tool_version=request.tool_version,
        principal=request.principal,
        approvals=request.approvals,
        approved_by=confirmation.approved_by,
        approvers=request.approvers,
        rule_id=request.rule_id,
        edited_from=request.edited_from,
        expires_at=request.expires_at,
        asked_at=confirmation.head.created_at,
        untrusted=confirmation.untrusted,
        rememberable=remembered and bool(request.tool_name and request.provider_id),
        recipe=job.name if job else "",
        title=job.title.removeprefix(f"{job.name} ") if job else "",
        labels=job.labels if job else {},
    )


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer to one of many questions did."""

    confirmation: str
    state: str = ""
    """The question's state afterwards; empty: the answer was refused."""
    missing: int = 0
    """The number of people that must still approve."""
    code: str = ""
    """The reason why the answer was refused; empty: it counts."""
    message: str = ""


def telling(questions: Sequence[ConfirmationView]) -> list[Any]:
    """Return the arguments of each question that are not the same in all of them; of a single one, all."""
    arguments = [question.args for question in questions]
    if len(arguments) < 2 or not all(isinstance(args, dict) for args in arguments):  # noqa: PLR2004 - one stands for itself
        return arguments
    first, *others = [{name: msgspec.json.encode(value) for name, value in args.items()} for args in arguments]
    alike = {name for name, value in first.items() if all(args.get(name) == value for args in others)}
    return [{name: value for name, value in args.items() if name not in alike} for args in arguments]


async def answer_each(
    confirmations: ConfirmationsNoun,
    digests: Sequence[tuple[str, str]],
    decision: Literal["approve", "deny"],
    *,
    by: str = "",
    reason: str = "",
    proof: ProofKind = "",
    sign: Path | None = None,
) -> list[Answered]:
    """Give one answer to each of these questions, named with the digest that was shown; a refusal stops no other."""
    answers = []
    for confirmation, digest in digests:
        try:
            view = await confirmations.decide(
                confirmation, decision, digest=digest, by=by, reason=reason, proof=proof, sign=sign
            )
        except RemitError as error:
            answers.append(Answered(confirmation=confirmation, code=error.code.name, message=error.message))
        else:
            missing = view.approvals - len(view.approved_by) if view.state == "pending" else 0
            answers.append(Answered(confirmation=view.confirmation, state=view.state, missing=missing))
    return answers
