"""JSON and labels that a reader typed into a form."""

from __future__ import annotations

from typing import Any

import msgspec

from remit.codes import Code
from remit.errors import UsageError
from remit.redact import line


def json_value(text: str, what: str) -> Any:
    """The value of a field; nothing stands for null. Raises UsageError."""
    if not text.strip():
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        remedy = 'Text stands in quotes: "done".'
        raise UsageError(f"{what} is not JSON: {line(str(error))}", code=Code.INVALID_INPUT, remedy=remedy) from error


def json_object(text: str, what: str) -> dict[str, Any]:
    """Names and values; nothing stands for none. Raises UsageError."""
    found = json_value(text, what)
    if found is None:
        return {}
    if not isinstance(found, dict):
        remedy = 'Write {"name": value}.'
        raise UsageError(f"{what} must be a JSON object.", code=Code.INVALID_INPUT, remedy=remedy)
    return found


def labels(text: str) -> dict[str, str]:
    """The label KEY=VALUE; nothing stands for none. Raises UsageError."""
    if not text:
        return {}
    key, separator, value = text.partition("=")
    if not (key and separator):
        raise UsageError(f"{text!r:.80} is not KEY=VALUE.", code=Code.INVALID_INPUT)
    return {key: value}
