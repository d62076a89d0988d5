"""Reading JSON that a server wrote: what does not have the type that it should have counts as missing."""

from __future__ import annotations

from typing import Any

import msgspec

from remit.models.faults import Server


def event(data: bytes) -> dict[str, Any]:
    """The JSON object of an event. Raises Server for anything else."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Server(f"the provider sent an event that is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Server("the provider sent an event that is not a JSON object")
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


def count(value: Any) -> int:
    """A number of tokens, or 0."""
    return value if isinstance(value, int) and value > 0 else 0


def place(value: Any) -> int | None:
    """An index, or None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def json_text(value: Any) -> str:
    """A JSON value as text."""
    return msgspec.json.encode(value).decode()
