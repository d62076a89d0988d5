"""The port to a model. What is sent is fixed before it is sent, so that it can be recorded first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from remit.canonical import sha256
from remit.models.names import ModelName
from remit.models.prompt import Ask
from remit.models.reply import ModelReply, Watch


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
