"""JSON values on their way into the journal and out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.canonical import as_json
from remit.errors import NotCanonicalError, PayloadErasedError, UsageError
from remit.redact import preview, words_of

if TYPE_CHECKING:
    from remit.codes import Code
    from remit.journal.journal import Journal


_TITLE: Final = 80
_LARGE: Final = 65_536
"""Bytes of an input from which on a title takes only its beginning."""
ERASED: Final = {"erased": True}
"""Shown for a value that was erased with its subject."""


async def value_of(journal: Journal, inline: Any, ref: Any) -> Any:
    """The value that an event holds, or that stands in a blob; None if neither does, ERASED if it was erased."""
    try:
        value = await journal.value(inline, ref)
    except PayloadErasedError:
        return ERASED
    return msgspec.json.decode(value) if value is not None else None


def given_of(value: Any) -> Any:
    """Return a recorded input without its nulls: a parameter that was given nothing has one."""
    return {name: entry for name, entry in value.items() if entry is not None} if isinstance(value, dict) else value


def encoded(value: Any, code: Code) -> bytes:
    """The value as JSON. Raises UsageError with `code` if it cannot be written as JSON."""
    try:
        return as_json(value)
    except NotCanonicalError as error:
        raise UsageError(f"the value cannot be sent: {error.message}", code=code, remedy=error.remedy) from error
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UsageError(f"the value cannot be sent: {error}", code=code, remedy="Send plain JSON values.") from error


def title_of(name: str, input_json: bytes) -> str:
    """Return the name of an untitled job: its recipe or plan and its input; a single text stands without its name."""
    if len(input_json) > _LARGE:
        return f"{name} {preview(input_json, _TITLE)}"
    value = msgspec.json.decode(input_json)
    words = words_of(value, _TITLE)
    texts = [(key, text) for key, text in value.items() if text] if isinstance(value, dict) else []
    if len(texts) == 1 and isinstance(texts[0][1], str):
        words = words.removeprefix(f"{texts[0][0]}: ")
    return f"{name} {words}".rstrip()
