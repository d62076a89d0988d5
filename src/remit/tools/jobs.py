"""The port through which jobs become tools: what their provider needs of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from remit.tools.provider import CallContext


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe that clients may start."""

    recipe: str
    description: str
    version: str
    input_schema: dict[str, Any] | None
    withheld: str = ""
    """Why it cannot be offered, with what to do about it; empty: it can."""


class JobService(Protocol):
    """The port that the provider needs of jobs."""

    def offers(self) -> Sequence[Offer]:
        """The recipes that clients may start."""
        ...

    async def first_invocation(self, ctx: CallContext) -> str:
        """The identifier under which a call was announced first."""
        ...

    async def start(self, recipe: str, args: dict[str, Any], *, job: str, principal: str, untrusted: bool) -> None:
        """Start a job of this identifier; nothing happens if it exists. Raise UsageError if the input does not fit.

        `untrusted`: a model wrote the input after it had read untrusted text.
        """
        ...

    async def state(self, job: str, principal: str | None = None) -> str:
        """Where a job stands; empty if it does not exist, or is not the principal's."""
        ...

    async def status(self, job: str) -> dict[str, Any]:
        """State, result or error, and open questions. Raise NotFoundError."""
        ...

    async def ended(self, job: str) -> None:
        """Wait until a job has ended."""
        ...

    async def cancel(self, job: str, *, by: str, reason: str) -> None:
        """Ask a job to stop. Raise StateError if it has ended."""
        ...
