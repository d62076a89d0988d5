"""Many questions at once: what tells them apart, and the same answer to each, bound to its own digest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from remit.errors import RemitError
from remit.record.views import ConfirmationView

if TYPE_CHECKING:
    from pathlib import Path

    from remit.gateway.proof import ProofKind
    from remit.service.confirmations import Confirmations


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
