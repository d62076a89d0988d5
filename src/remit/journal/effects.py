"""Judges what is known of the effect of a call, and who says so: nothing else does (rule 21). Pure.

The verdict on a result says nothing of it: what a tool did before it gave an answer that cannot be used, it did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from remit.codes import Code

if TYPE_CHECKING:
    from remit.journal.kinds import ErrorInfo, Known, Sayer, ToolInvocationFinished, ToolInvocationStarted


class Effect(msgspec.Struct, frozen=True):
    """Knowledge of an effect, and who has it."""

    known: Known = ""
    by: Sayer = ""

    @property
    def stands(self) -> bool:
        """Return whether the call changed something, or may have: nothing repeats it without a person's decision."""
        return self.known not in {"", "none"}

    @property
    def members(self) -> dict[str, str]:
        """Return it as evidence has it: no members for a call that only reads."""
        return {"effect": self.known, "effect_by": self.by} if self.known else {}

    @property
    def words(self) -> str:
        """Return it in words for people."""
        if self == FAILED:
            return "the tool says that it failed; whether it changed something is unknown"
        return f"{_WORDS.get(self.known, self.known)}{_SAYERS.get(self.by, '') if self != COMMITTED else ''}"


READS: Final = Effect()
"""The call only reads."""
COMMITTED: Final = Effect("committed", "tool")
"""The tool answered."""
UNSENT: Final = Effect("none", "remit")
"""The call never reached it."""
LOST: Final = Effect("unknown", "remit")
"""It was sent, and no answer came that can be read."""
DECLINED: Final = Effect("none", "tool")
"""The tool says that it refused the call, and did nothing."""
FAILED: Final = Effect("unknown", "tool")
"""The tool says that it failed, and not how far it had come."""
_WORDS: Final = {
    "": "it only reads",
    "none": "nothing happened",
    "committed": "it happened",
    "unknown": "it is unknown whether it happened",
}
_SAYERS: Final = {"tool": ", as the tool says", "person": ", as a person says", "client": ", as its client reports"}

UNSENT_CAUSES: Final = frozenset({Code.ProviderClosed.name, Code.SpawnFailed.name})
"""Causes after which the tool certainly did not get the call, so that anyone may make it again."""
UNHEARD: Final = frozenset({Code.Timeout.name, Code.ConnectionError.name, Code.NetworkError.name, Code.BadGateway.name})
"""Causes after which it is unknown whether the tool did what it was asked to (rule 3)."""
_DECLINING: Final = frozenset({Code.InvalidInput.name, Code.ToolNotFound.name, Code.AuthError.name})
_UNUSABLE: Final = frozenset(
    {
        Code.RESULT_INVALID.name,
        Code.RESULT_TOO_LARGE.name,
        Code.RESULT_NOT_ENCODABLE.name,
        Code.INVALID_EVIDENCE_CANDIDATE.name,
    }
)
"""Codes of answers that came, and cannot be used."""
_BLOCKED: Final = frozenset(code.name for code in Code if code.status == "blocked")
_UNANSWERED: Final = frozenset({Code.TOOL_TIMEOUT.name, Code.TOOL_UNAVAILABLE.name, Code.OUTCOME_UNKNOWN.name})


def of_failure(code: str, cause: str, *, unheard: bool) -> Effect:
    """Return what is known after a call with side effects that failed, unless its tool says more than its cause."""
    if cause in UNSENT_CAUSES:
        return UNSENT
    if unheard:
        return LOST
    if code in _UNUSABLE:
        return COMMITTED
    return DECLINED if cause in _DECLINING or code in _BLOCKED else FAILED


def effect_reported(effect: Effect, *, open_: bool) -> Effect:
    """Return what is known of an effect by the report of the client that made the call itself."""
    if effect.known and open_:
        return Effect("unknown", "client")
    return Effect(effect.known, "client") if effect.by == "tool" else effect


def effect_of(started: ToolInvocationStarted, finished: ToolInvocationFinished | None) -> Effect:
    """Return what is known of a call that was announced."""
    if started.side_effect == "read":
        return READS
    if finished is None:
        return LOST
    return recorded(finished)


def recorded(finished: ToolInvocationFinished) -> Effect:
    """Return what is known of a call with side effects that has ended."""
    if finished.effect:
        return Effect(finished.effect, finished.effect_by)
    if finished.step_outcome == "uncertain":
        return LOST
    error = finished.error
    if finished.outcome == "success" or error is None:
        return COMMITTED
    return _before(finished, error)


def _before(finished: ToolInvocationFinished, error: ErrorInfo) -> Effect:
    """Return what the code of a failure says that an older Remit recorded, which did not say more."""
    if finished.decided_by and error.code == Code.OUTCOME_UNKNOWN.name:
        return Effect("none", "person")
    unheard = error.code in _UNANSWERED or (error.code not in _UNUSABLE and error.cause in UNHEARD)
    return of_failure(error.code, error.cause, unheard=unheard)
