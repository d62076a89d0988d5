"""The arguments of a call as a model wrote them."""

from __future__ import annotations

import json
from typing import Any

import msgspec


class InvalidArgumentsError(Exception):
    """What the model wrote is not a JSON object."""


def arguments_of(text: str) -> dict[str, Any]:
    """The arguments; no text at all means none. Raises InvalidArgumentsError, never repairs anything."""
    if not text:
        return {}
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise InvalidArgumentsError(f"the arguments are not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidArgumentsError(f"the arguments are {json.dumps(value)[:40]}, not a JSON object")
    return value
