"""A question to a person, and its answer, if any."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from remit.canonical import digest
from remit.clock import SKEW
from remit.journal.event import Event, StreamHead
from remit.journal.kinds import ConfirmationDecided, ConfirmationRequested, ConfirmationUsed, UntrustedArgument, decode
from remit.redact import preview_of

KIND: Final = "confirmation"
"""The kind of their streams."""
_ENDS: Final = {"deny": "denied", "edit": "replaced", "expire": "expired", "revoke": "withdrawn"}


class Confirmation(msgspec.Struct, frozen=True, kw_only=True):
    """A question and its answer, if any."""

    id: str
    stream: str
    state: str
    """`pending`, `approved`, `denied`, `expired`, `replaced`, `withdrawn` or `used`."""
    request: ConfirmationRequested
    args: Any
    """The exact arguments of the call that is asked about; for a plain question, its details."""
    decisions: tuple[ConfirmationDecided, ...]
    head: StreamHead
    untrusted: tuple[UntrustedArgument, ...] = ()
    """The arguments from untrusted text."""
    decided_at: int = 0
    """The time of the newest decision, in microseconds since the Unix epoch; 0: there is none."""

    @property
    def caller(self) -> str:
        """The stream whose call waits for the answer."""
        return self.stream.rpartition(f"/{KIND}/")[0]

    @property
    def approved_by(self) -> tuple[str, ...]:
        """Return who has approved so far, each once."""
        return tuple(dict.fromkeys(d.by for d in self.decisions if d.decision == "approve"))

    @property
    def bound(self) -> bool:
        """Return whether the recorded call is the one that its digest stands for: all that decides what would run."""
        digest_of = rebinding(self.request, self.caller, self.args)
        return bool(self.request.provider_id) and digest_of == self.request.digest

    @property
    def enough(self) -> bool:
        """Return whether as many have approved as must."""
        return len(self.approved_by) >= self.request.approvals

    @property
    def last(self) -> ConfirmationDecided | None:
        """The newest decision."""
        return self.decisions[-1] if self.decisions else None

    @property
    def replaced_by(self) -> str:
        """The confirmation that stands in its place; empty where none does."""
        return self.last.replaced_by if self.last is not None else ""

    def lapsed(self, now: int) -> bool:
        """Return whether the time to answer is over without an answer."""
        return self.state == "pending" and self._expired(now)

    def usable(self, now: int) -> bool:
        """Return whether it is approved, in time, and not decided later than now, by a clock that was set back."""
        return self.state == "approved" and not self._expired(now) and self.decided_at <= now + SKEW

    def _expired(self, now: int) -> bool:
        return self.request.expires_at is not None and now >= self.request.expires_at


class RecalledCall(msgspec.Struct, frozen=True):
    """The state that a call finds again after it waited for a person."""

    newest: Confirmation
    """The confirmation, or the one that replaced it last."""
    tool: str
    """The full name of the tool that was asked about at first."""
    arguments_hash: str
    """Digest of the arguments that were asked about at first, before anyone edited them."""


def state_of(request: ConfirmationRequested, decisions: Sequence[ConfirmationDecided]) -> str:
    """The state of a question that was not used, by the answers to it (rule 14): never by its head."""
    state, approved = "pending", set[str]()
    for decision in decisions:
        if decision.decision == "approve":
            approved.add(decision.by)
            state = "approved" if len(approved) >= request.approvals else state
        else:
            state = "replaced" if decision.replaced_by else _ENDS.get(decision.decision, "withdrawn")
    return state


def folded(events: Iterable[Event]) -> tuple[ConfirmationRequested | None, list[ConfirmationDecided], bool, int]:
    """Return the question, the answers to it, whether an approval was used, and the last answer's time (rule 14)."""
    request: ConfirmationRequested | None = None
    decisions: list[ConfirmationDecided] = []
    used, decided_at = False, 0
    for event in events:
        payload = decode(event.kind, event.data)
        if isinstance(payload, ConfirmationRequested):
            request = payload
        elif isinstance(payload, ConfirmationDecided):
            decisions.append(payload)
            decided_at = event.at
        elif isinstance(payload, ConfirmationUsed):
            used = True
    return request, decisions, used, decided_at


def stream_of(caller: str, confirmation: str) -> str:
    """The stream of a confirmation; it shares the caller's partition, so that both can change in one transaction."""
    return f"{caller}/{KIND}/{confirmation}"


def title_of(tool: str, args: Any) -> str:
    """A question about a call as lists show it."""
    return f"{tool} {preview_of(args)}"


def binding(
    *,
    stream: str,
    step: str,
    tool: str,
    contract_hash: str,
    args: Any,
    principal: str,
    policy_hash: str,
    tool_version: str = "",
    provider_id: str = "",
    capability_level: int = 0,
    prompt_hash: str = "",
) -> str:
    """The digest that a confirmation is bound to: everything that decides what would run.

    Without `provider_id` it is the digest of a question that an older Remit asked, which did not bind version,
    provider, level and text; and of a question that no tool is behind.
    """
    bound = {
        "stream": stream,
        "step": step,
        "tool": tool,
        "contract": contract_hash,
        "args": args,
        "principal": principal,
        "policy": policy_hash,
    }
    if provider_id:
        bound |= {"version": tool_version, "provider": provider_id, "level": capability_level, "text": prompt_hash}
    return digest(bound)


def rebinding(request: ConfirmationRequested, caller: str, args: Any) -> str:
    """The digest of what `request` asks for in the stream `caller`, with these arguments."""
    return binding(
        stream=caller,
        step=request.step,
        tool=request.tool_name,
        contract_hash=request.contract_hash,
        args=args,
        principal=request.principal,
        policy_hash=request.policy_hash,
        tool_version=request.tool_version,
        provider_id=request.provider_id,
        capability_level=request.capability_level,
        prompt_hash=request.prompt_hash,
    )
