"""The port of wire formats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from remit.models.faults import ModelFault
from remit.models.offers import Dialect
from remit.models.prompt import Ask
from remit.models.reply import Reply, Watch


class Failure(NamedTuple):
    """A response that is not an answer."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    now: int
    """Microseconds since the Unix epoch when it came."""


class Reducer(Protocol):
    """Makes one reply of the events of a stream."""

    done: bool
    """Nothing that matters comes any more."""

    def feed(self, data: bytes, watch: Watch) -> None:
        """Take the data of one event. Raises ModelFault for an error in the stream or an event that makes no sense."""
        ...

    def reply(self) -> Reply:
        """The reply. Raises Cut unless the wire said that it is complete."""
        ...


class Wire(Protocol):
    """One format."""

    api: str
    """Its name and version, as recorded."""
    dialect: Dialect
    """The part that it takes of the schemas of tools."""

    def path(self, model: str) -> str:
        """Return where a request goes, below the provider's address."""
        ...

    def headers(self, key: str) -> dict[str, str]:
        """Headers that carry the key; none for an empty one."""
        ...

    def body(self, model: str, ask: Ask, producer: str) -> dict[str, Any]:
        """The request. `producer` is the model's own name in messages. Raises Rejected for what the wire cannot say."""
        ...

    def reducer(self, ask: Ask, producer: str) -> Reducer:
        """A reducer for the answer to this request."""
        ...

    def fault(self, failure: Failure) -> ModelFault:
        """Return what a failed response means."""
        ...
