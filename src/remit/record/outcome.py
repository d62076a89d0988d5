"""The outcome of a call as faces show it: plain values, the code by its name."""

from __future__ import annotations

from typing import Any

import msgspec

from remit.codes import Code, named
from remit.gateway.outcome import EvidenceItem, Outcome, Status
from remit.journal.effects import Effect
from remit.journal.kinds import Known, Sayer


class OutcomeView(msgspec.Struct, frozen=True, kw_only=True):
    """`ok` with a value; or `failed`, `blocked`, `pending` with a code, the reason and what to do."""

    status: Status
    value: Any = None
    code: str = ""
    """Stable code (docs/codes.md); empty if ok."""
    reason: str = ""
    remedy: str = ""
    cause: str = ""
    """The provider's own code behind a failure."""
    retryable: bool = False
    """Whether the same call may succeed later."""
    again_ms: int | None = None
    """Milliseconds after which it may, where a limit refused it."""
    detail: Any = None
    """Details that the provider attached to a failure, as JSON; not recorded."""
    evidence: tuple[EvidenceItem, ...] = ()
    invocation_id: str = ""
    """Empty: the call was not announced."""
    confirmation: str = ""
    """The question to a person that a pending or refused call waits, or waited, for."""
    uncertain: bool = False
    """The call may have had its side effect, and nothing records whether it did (rule 3)."""
    effect: Known = ""
    """The known effect, however good the result was; empty: it only reads, or was not made."""
    effect_by: Sayer = ""
    """The one who says so: `remit`, which did not send it or heard nothing; the `tool`, by its answer; a `person`."""
    duration_ms: float = 0.0

    @property
    def named(self) -> str:
        """The code as people read it: with the provider's own, if that says more than that the tool failed."""
        return named(self.code, self.cause)

    @property
    def ok(self) -> bool:
        """Return whether the call did what was asked."""
        return self.status == "ok"


def outcome_view(outcome: Outcome) -> OutcomeView:
    """The view of an outcome."""
    return OutcomeView(
        status=outcome.status,
        value=outcome.value,
        code=outcome.code.name if outcome.code else "",
        reason=outcome.reason,
        remedy=outcome.remedy,
        cause=outcome.cause or "",
        retryable=outcome.code.retryable if outcome.code else False,
        again_ms=outcome.again_ms,
        detail=outcome.detail,
        evidence=outcome.evidence,
        invocation_id=outcome.invocation_id or "",
        confirmation=outcome.confirmation or "",
        uncertain=outcome.uncertain,
        effect=outcome.effect.known,
        effect_by=outcome.effect.by,
        duration_ms=outcome.duration_us / 1_000,
    )


_GENERAL = {"blocked": Code.POLICY_DENIED, "pending": Code.CONFIRMATION_REQUIRED}


def outcome_of(view: OutcomeView) -> Outcome:
    """The outcome behind a view."""
    return Outcome(
        status=view.status,
        value=view.value,
        code=Code.recorded(view.code, _GENERAL.get(view.status, Code.TOOL_EXEC_FAILED), retryable=view.retryable)
        if view.code
        else None,
        reason=view.reason,
        remedy=view.remedy,
        cause=view.cause or None,
        again_ms=view.again_ms,
        detail=view.detail,
        evidence=view.evidence,
        invocation_id=view.invocation_id or None,
        confirmation=view.confirmation or None,
        uncertain=view.uncertain,
        effect=Effect(view.effect, view.effect_by),
        duration_us=round(view.duration_ms * 1_000),
    )
