"""Many questions at once: which ones, what tells them apart, and the same answer to each, bound to its own digest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from remit.errors import RemitError
from remit.service.views import ConfirmationView

if TYPE_CHECKING:
    from pathlib import Path

    from remit.gateway.proof import ProofKind
    from remit.service.confirmations import Confirmations


class QuestionFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which questions; every condition has to hold."""

    tool: str = ""
    """The full name of the tool that is asked about."""
    recipe: str = ""
    """The recipe or plan of the job that asks."""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    """Of the job that asks."""
    principal: str = ""
    """In whose name is asked."""

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


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer to one of many questions did."""

    confirmation: str
    state: str = ""
    """The question's state afterwards; empty: the answer was refused."""
    missing: int = 0
    """How many people must still approve."""
    code: str = ""
    """Why the answer was refused; empty: it counts."""
    message: str = ""


def telling(questions: Sequence[ConfirmationView]) -> list[Any]:
    """Return the arguments of each question that are not the same in all of them; of a single one, all."""
    given = [question.args for question in questions]
    if len(given) < 2 or not all(isinstance(args, dict) for args in given):  # noqa: PLR2004 - one stands for itself
        return given
    first, *others = [{name: msgspec.json.encode(value) for name, value in args.items()} for args in given]
    alike = {name for name, value in first.items() if all(args.get(name) == value for args in others)}
    return [{name: value for name, value in args.items() if name not in alike} for args in given]


async def answer_each(
    confirmations: Confirmations,
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
