"""The arguments of a call as a model wrote them."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

_BLANKS: Final = " \t\r\n"


class InvalidArgumentsError(Exception):
    """The model's text is not a JSON object."""


def sent(text: str) -> str:
    """Arguments as they go back to a provider, which wants an object where the model wrote nothing."""
    return text if text.strip(_BLANKS) else "{}"


def arguments_of(text: str) -> dict[str, Any]:
    """The arguments; no text, or only blanks, means none. Raises InvalidArgumentsError, repairs nothing."""
    if not text.strip(_BLANKS):
        return {}
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise InvalidArgumentsError(f"the arguments are not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidArgumentsError(f"the arguments are {json.dumps(value)[:40]}, not a JSON object")
    return value
