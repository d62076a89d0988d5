"""The port of wire formats.

Reading JSON that a server wrote.

What decides what is done (text, calls, their names and arguments, why the model stopped) has to have its type: anything
else is a fault, for a call without its arguments would be another call. The rest counts as missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from remit.models.faults import ModelFault, ServerFault
from remit.models.offers import Dialect
from remit.models.prompt import Ask
from remit.models.reply import ModelReply, Watch


class WireFailure(NamedTuple):
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

    def reply(self) -> ModelReply:
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

    def fault(self, failure: WireFailure) -> ModelFault:
        """Return what a failed response means."""
        ...


_SHOWN: Final = 40


def event(data: bytes) -> dict[str, Any]:
    """The JSON object of an event. Raises Server for anything else."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ServerFault(f"the provider sent an event that is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ServerFault("the provider sent an event that is not a JSON object")
    return value


def body(data: bytes) -> dict[str, Any]:
    """The JSON object of a response; of a list its first; empty for anything else."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return obj(value[0] if isinstance(value, list) and value else value)


def obj(value: Any) -> dict[str, Any]:
    """An object, or an empty one."""
    return value if isinstance(value, dict) else {}


def objs(value: Any) -> list[dict[str, Any]]:
    """The objects of a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """A text, or an empty one."""
    return value if isinstance(value, str) else ""


def said(value: Any, what: str) -> str:
    """A text that decides something; null is an empty one. Raises Server for anything else."""
    if value is None or isinstance(value, str):
        return value or ""
    raise ServerFault(f"the provider sent {what} that is not text: {json_text(value)[:_SHOWN]}")


def part(value: Any, what: str) -> dict[str, Any]:
    """An object that decides something; null is an empty one. Raises Server for anything else."""
    if value is None or isinstance(value, dict):
        return value or {}
    raise ServerFault(f"the provider sent {what} that is not an object: {json_text(value)[:_SHOWN]}")


def parts(value: Any, what: str) -> list[dict[str, Any]]:
    """A list of objects that decide something; null is an empty one. Raises Server for anything else."""
    if value is None:
        return []
    if isinstance(value, list):
        return [part(item, what) for item in value]
    raise ServerFault(f"the provider sent {what} that are not a list: {json_text(value)[:_SHOWN]}")


def written(value: Any) -> str:
    """The arguments of a call as text: some servers send the object itself. Raises Server for anything else."""
    return json_text(value) if isinstance(value, dict) else said(value, "arguments")


def count(value: Any) -> int:
    """A number of tokens, or 0."""
    return value if isinstance(value, int) and value > 0 else 0


def place(value: Any) -> int | None:
    """An index, or None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def json_text(value: Any) -> str:
    """A JSON value as text."""
    return msgspec.json.encode(value).decode()
