"""A remembered approval: a person's "yes, and also next time", bounded in whom, what, where and how long it covers.

It answers a question that the policy asks, and nothing else: it lifts no denial, it is not part of the policy hash,
and once it is revoked it is simply no longer handed to `Policy.decide`. What is not certainly covered is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from remit.canonical import digest
from remit.clock import SKEW
from remit.errors import PolicyError
from remit.policy.decision import Decision, Query
from remit.policy.table import closest
from remit.regex import regex

Scope = Literal["job", "session", "everything"]

_DIGEST: Final = regex(r"sha256:[0-9a-f]{64}")


class Remembered(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One remembered approval.

    Fields that bound it have no default, unless older ones lack them: what is left out must not widen it.
    """

    id: str
    tool: str
    """The tool's full name."""
    provider_id: str
    contract_hash: str
    """The tool's contract when it was approved; another contract asks again."""
    args_digest: str | None
    """`remit.canonical.digest` of the exact arguments; None covers every call of the tool."""
    scope: Scope
    stream: str
    """The root of the job's or session's stream (`job/J`), which covers those below it; empty for everything."""
    principal: str
    """Whose calls it covers."""
    made_by: tuple[str, ...]
    """Everyone who approved."""
    made_at: int
    """Microseconds since the Unix epoch."""
    expires_at: int
    """Microseconds since the Unix epoch; from then on it covers nothing."""
    tool_version: str | None = None
    """The tool's version when it was approved. None, here and below: an older Remit made it and did not bind this."""
    capability_level: int | None = None
    prompt_hash: str | None = None
    """The text that a model read of the tool; another text asks again."""

    def __post_init__(self) -> None:
        """Refuse what covers more than a person can have meant. Raises PolicyError."""
        if not (self.id and self.tool and self.provider_id and self.principal and self.made_by):
            raise PolicyError("remembered approval: id, tool, provider_id, principal and made_by must not be empty")
        if not _DIGEST.fullmatch(self.contract_hash):
            raise PolicyError(f"remembered approval {self.id}: contract_hash is not a digest")
        if self.args_digest is not None and not _DIGEST.fullmatch(self.args_digest):
            raise PolicyError(f"remembered approval {self.id}: args_digest is not a digest")
        if (self.scope == "everything") == bool(self.stream):
            raise PolicyError(
                f"remembered approval {self.id}: scope {self.scope} does not go with stream {self.stream!r}"
            )
        if self.expires_at <= self.made_at:
            raise PolicyError(f"remembered approval {self.id}: it expires before it was made")

    @property
    def decision(self) -> Decision:
        """Return what it decides where it answers."""
        where = "everything" if self.scope == "everything" else f"this {self.scope}"
        people = ", ".join(self.made_by)
        return Decision(
            effect="allow",
            rule_id=f"remembered:{self.id}",
            reason=f"Approved by {people}, remembered for {where}.",
            until=self.expires_at,
        )

    def answers(self, query: Query, decision: Decision) -> bool:
        """Return whether it covers this call and satisfies what is asked."""
        return not self.unanswered(query, decision)

    def unanswered(self, query: Query, decision: Decision) -> str:
        """Return why it does not answer; empty where it does."""
        if decision.effect != "ask":
            return "nothing is asked"
        if decision.doubt:
            return "it is unknown whether a rule forbids the call, and the approval was not about that"
        return self._other_call(query) or self._spent(query, decision)

    def _other_call(self, query: Query) -> str:
        tool = query.tool
        if tool is None or tool.name != self.tool or tool.provider_id != self.provider_id:
            return f"it covers {self.tool} of {self.provider_id}"
        if query.caller.principal != self.principal:
            return f"it covers calls of {self.principal}"
        if not self._reaches(query.caller.stream):
            return f"it covers {self.stream}"
        if self.args_digest is not None and self.args_digest != digest(query.args):
            return "it covers other arguments"
        return ""

    def _spent(self, query: Query, decision: Decision) -> str:
        if not 0 < query.now < self.expires_at:
            return "it has expired"
        if query.now < self.made_at - SKEW:
            return "it was made later than now, so this machine's clock is wrong"
        if query.contract_hash != self.contract_hash:
            return "the tool's contract has changed since"
        if changed := self._changed(query):
            return changed
        if not self._suffices(decision):
            return "too few of the allowed approvers have approved"
        return ""

    def _changed(self, query: Query) -> str:
        """Return what of the tool is not as it was when it was approved, beside its contract."""
        tool = query.tool
        unknown = (
            {None, ""} if self.provider_id.startswith("mcp_") else {None}
        )  # an older Remit knew none of a server's
        if tool is not None and self.tool_version not in {*unknown, tool.version}:
            return "the tool's version has changed since"
        if tool is not None and self.capability_level not in {None, int(tool.capability_level)}:
            return "the tool's level has changed since"
        if self.prompt_hash not in {None, query.prompt_hash}:
            return "the tool's description has changed since"
        return ""

    def _reaches(self, stream: str) -> bool:
        return self.scope == "everything" or stream == self.stream or stream.startswith(self.stream + "/")

    def _suffices(self, decision: Decision) -> bool:
        people = set(self.made_by)
        if decision.approvers:
            people &= set(decision.approvers)
        if decision.approvals > 1:
            people.discard(self.principal)
        return len(people) >= decision.approvals


def parse_remembered(raw: Mapping[str, Any]) -> Remembered:
    """A remembered approval from its recorded form. Raises PolicyError."""
    for key in raw:
        if key not in Remembered.__struct_fields__:
            remedy = closest(key, Remembered.__struct_fields__)
            raise PolicyError(f'remembered approval, key "{key}" is not known', remedy=remedy)
    try:
        return msgspec.convert(raw, Remembered)
    except msgspec.ValidationError as error:
        raise PolicyError(f"remembered approval: {error}") from error
