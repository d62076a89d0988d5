"""The port to a model, and the turns at one: what is sent is fixed before it is sent, so that it is recorded first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from remit.canonical import sha256
from remit.models.faults import Busy
from remit.models.names import ModelName
from remit.models.prompt import Ask
from remit.models.reply import ModelReply, Watch

if TYPE_CHECKING:
    from remit.clock import Clock


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """A request, exactly as it will be sent."""

    ask: Ask
    api: str
    """The wire format and its version, such as `anthropic-messages/2023-06-01`."""
    path: str
    body: bytes
    left_out: Mapping[str, str] = {}
    """Tools that are not offered, for their provider would refuse the whole request, each with the reason."""

    @property
    def hash(self) -> str:
        """The digest of the body and of what it is written in."""
        return sha256(f"{self.api}\0{self.path}\0".encode() + self.body)


class Model(Protocol):
    """One model at one provider."""

    @property
    def name(self) -> ModelName:
        """Return which model this is."""
        ...

    def prepare(self, ask: Ask) -> Sending:
        """Give the request: pure, and the same bytes for the same prompt. Raises ModelFault for what cannot be sent."""
        ...

    async def send(self, sending: Sending, watch: Watch) -> ModelReply:
        """Send it once and return the complete reply; pieces go to `watch` as they come.

        Never asks again by itself. Raises ModelFault. Cancellation closes the connection.
        """
        ...

    async def close(self) -> None:
        """Release everything; may be called twice."""
        ...


SHORT_S: Final = 3.0
"""Seconds up to which a pause is waited for in place."""


class Limiter:
    """One limit for each provider, key and model, shared by everything in the process that asks it.

    A provider that is busy says so to one caller and means all of them: while it wants to be left alone, no request is
    sent. A short while is waited for here; a long one is a fault with its time, so that a job can wait for it without a
    worker.
    """

    def __init__(self, clock: Clock, at_once: int) -> None:
        self._clock = clock
        self._turns = asyncio.Semaphore(at_once)
        self._until = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """One request. Raises Busy if the provider will accept no requests for long."""
        async with self._turns:
            while (rest := self._until - self._clock.monotonic()) > 0:
                if rest > SHORT_S:
                    raise Busy(f"the provider accepts no requests for another {rest:.0f} s", after_s=rest, unsent=True)
                await self._clock.sleep(rest)
            yield

    def pause(self, seconds: float) -> None:
        """Ask nothing more for so many seconds."""
        self._until = max(self._until, self._clock.monotonic() + seconds)
