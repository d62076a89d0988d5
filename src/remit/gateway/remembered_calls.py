"""The calls that remembered approvals allowed, checked after the fact by `remit verify`: could they rest on those?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from remit.codes import Code
from remit.errors import ChainBrokenError, NotFoundError, PayloadErasedError, UsageError
from remit.gateway.remembered import KIND, proven
from remit.journal.kinds import ApprovalRemembered, CommandStarted, ToolInvocationStarted, decode
from remit.policy.remembered import parse_remembered

if TYPE_CHECKING:
    from remit.gateway.confirmations import Confirmations
    from remit.journal.event import Event
    from remit.journal.journal import Journal
    from remit.policy.remembered import Remembered

_TOOL: Final = ToolInvocationStarted.KIND
_CALLS: Final = frozenset({_TOOL, CommandStarted.KIND})
_PREFIX: Final = "remembered:"


class RememberedCalls:
    """The calls that remembered approvals allowed, noted as their streams are read, and whether those prove it."""

    def __init__(self, journal: Journal, confirmations: Confirmations) -> None:
        self._journal = journal
        self._confirmations = confirmations
        self._calls: dict[str, dict[tuple[str, str], str]] = {}
        """By rule: the tool and the digest of the arguments, and the stream of one such call."""

    def note(self, events: Sequence[Event], payloads: Sequence[Any]) -> None:
        """Take in events, with what they say."""
        for event, payload in zip(events, payloads, strict=True):
            if event.kind in _CALLS and payload is not None and payload.rule_id.startswith(_PREFIX):
                tool = (payload.tool_name, payload.arguments_hash) if event.kind == _TOOL else ("", "")
                self._calls.setdefault(payload.rule_id.removeprefix(_PREFIX), {})[tool] = event.stream

    async def problems(self) -> list[tuple[str, str]]:
        """The calls whose remembered approval is not there, not proven, or covers another call: stream and words."""
        problems: list[tuple[str, str]] = []
        for rule, calls in self._calls.items():
            try:
                covered = await self._load(rule)
            except PayloadErasedError:
                continue
            except (ChainBrokenError, UsageError) as error:
                why = f"a call ran on the remembered approval {rule}, which is not proven: {error.message}"
                problems += [(stream, f"{stream}: {why}") for stream in dict.fromkeys(calls.values())]
                continue
            for (tool, arguments), stream in calls.items():
                if tool and (tool != covered.tool or covered.args_digest not in {None, arguments}):
                    problems.append((stream, f"{stream}: a call ran on {rule}, which covers other calls"))
        return problems

    async def _load(self, rule: str) -> Remembered:
        """A remembered approval as it was made. Raises UsageError unless it was proven then."""
        for event in await self._journal.read(f"{KIND}/{rule}"):
            payload = decode(event.kind, event.data)
            if isinstance(payload, ApprovalRemembered):
                found, proofs = parse_remembered(payload.rule), self._confirmations.proofs
                if proofs.mode == "any":
                    return found
                question = await self._confirmations.find(payload.confirmation)
                return await proven(found, payload, question, proofs, event.at)
        raise NotFoundError("it is not in the journal", code=Code.STREAM_NOT_FOUND)
