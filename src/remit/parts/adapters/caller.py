"""The catalog as agents of other frameworks use it: what is offered, and calls that are made once.

Every call passes the gate, with an idempotency key made of the framework's own identifiers. So the same call made
again, because the framework resumes or repeats a step, gets the recorded outcome, in any process.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Protocol

from remit.clock import Clock, SystemClock
from remit.codes import Code
from remit.errors import SettingsError
from remit.gateway import outcome as words
from remit.gateway.outcome import text_of
from remit.ids import new_id

if TYPE_CHECKING:
    from remit.gateway.outcome import Outcome
    from remit.record.views import ToolView
    from remit.service.service import Service

EVERY: Final = ("*",)
_MAX_KEY: Final = 255
_FIRST_S: Final = 0.05
_LONGEST_S: Final = 2.0
"""Seconds between two looks at whether a person has decided."""
_WAITS: Final = "Not called yet: a person has to approve this call first. Go on without it; do not repeat the call."


class OpenRemit(Protocol):
    """A Remit that is open: one over a journal here, or a RemoteRemit."""

    @property
    def service(self) -> Service:
        """Return what it can do, by noun."""
        ...

    async def call(self, tool: str, args: dict[str, Any] | None = None, *, key: str = "") -> Outcome:
        """Call a tool; under a key, once."""
        ...


class Governed:
    """Some tools of a catalog.

    The full names of those tools fit one of `tools`. A call that a person has to approve waits for `patience_s`
    seconds; None: for as long as the question is open.
    """

    def __init__(
        self, remit: OpenRemit, tools: Sequence[str], patience_s: float | None, *, clock: Clock | None = None
    ) -> None:
        self._remit = remit
        self._patterns = tuple(tools)
        self._patience_s = patience_s
        self._clock = clock or SystemClock()
        self.scope = new_id("scope")
        """Stands for the run, if the framework does not name it."""

    async def offered(self) -> list[ToolView]:
        """The tools that may be called now, by name; those that policy denies in any case are left out."""
        views = await self._remit.service.tools.views()
        return [
            view
            for view in views
            if not view.quarantined
            and view.policy != "denied"
            and any(fnmatchcase(view.name, pattern) for pattern in self._patterns)
        ]

    async def call(self, tool: str, args: dict[str, Any], *identity: str) -> Outcome:
        """Make a call once; `identity` is what the framework knows it by.

        The outcome is pending only if a person did not decide in time.
        """
        key = key_of(identity)
        outcome = await self._remit.call(tool, args, key=key)
        left, pause = self._patience_s, _FIRST_S
        while outcome.status == "pending" and outcome.confirmation and (left is None or left > 0):
            step = pause if left is None else min(pause, left)
            await self._clock.sleep(step)
            left, pause = None if left is None else left - step, min(pause * 2, _LONGEST_S)
            question = await self._remit.service.confirmations.view(outcome.confirmation)
            if question.state != "pending":
                outcome = await self._remit.call(tool, args, key=key)
        return outcome


def key_of(identity: Sequence[str]) -> str:
    """The idempotency key of a call, from what a framework knows it by."""
    key = "/".join(identity)
    return key if len(key) <= _MAX_KEY and key.isprintable() else sha256(key.encode()).hexdigest()


def told(outcome: Outcome) -> str:
    """Return what the model reads."""
    if outcome.ok:
        return text_of(outcome.value)
    return _WAITS if outcome.status == "pending" else words.failure(outcome)


def traced(outcome: Outcome) -> dict[str, Any]:
    """Return where the call is on record, for the program around the agent."""
    return {
        "invocation_id": outcome.invocation_id,
        "code": outcome.code.name if isinstance(outcome.code, Code) else "",
        "confirmation": outcome.confirmation,
    }


def not_installed(extra: str, error: ModuleNotFoundError) -> SettingsError:
    """The error of an adapter whose framework is missing."""
    return SettingsError(f"{error.name} is not installed", remedy=f"Install it: pip install 'remit[{extra}]'")
