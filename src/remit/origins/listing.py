"""Identifiers that a listing of a provider vouches for: those in its fields, if none of them is free text. Pure.

A list of rooms or people as records of short fields names things that the provider has. A result with free text in any
field is none: the author of the text may have chosen what stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from remit.origins.roles import is_count, is_listed, role_of_name

_LONGEST: Final = 128
"""Characters of an identifier."""
_WORDS: Final = 5
"""Words of a field from which on it is free text."""
_NOTHING: Final[frozenset[str]] = frozenset()


class _Field(NamedTuple):
    """A single value of a result."""

    name: str
    value: Any


def identifiers(text: str) -> frozenset[str]:
    """The identifiers in a result, given as JSON; none if it is no table or list, or holds free text."""
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:  # it was cut, as one too long to be shown whole
        return _NOTHING
    fields = list(_fields(value, "")) if isinstance(value, dict | list) else []
    if any(map(_is_free, fields)):
        return _NOTHING
    return frozenset(str(field.value) for field in fields if is_listed(field.name) and _is_identifier(field))


def _fields(value: Any, name: str) -> Iterator[_Field]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _fields(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _fields(item, name)
    else:
        yield _Field(name, value)


def _is_free(field: _Field) -> bool:
    """Whether a field is text that someone has written."""
    value = field.value
    if not isinstance(value, str) or not value:
        return False
    return role_of_name(field.name) == "content" or len(value.splitlines()) > 1 or len(value.split()) >= _WORDS


def _is_identifier(field: _Field) -> bool:
    if isinstance(field.value, str):
        return 0 < len(field.value) <= _LONGEST
    return isinstance(field.value, int) and not isinstance(field.value, bool) and not is_count(field.name)
