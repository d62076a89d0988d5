"""The JSON of orders and results, spelled as protobuf spells it: snake_case is written, camelCase is read too. Pure.

Fields that a newer version added are kept and written again with the rest: in `unknown_json` if they have names, in
`unknown_fields` if they came in binary.
"""

from __future__ import annotations

import json
from typing import Any, Final, TypeVar

import msgspec

from remit.codes import Code
from remit.errors import UsageError
from remit.regex import regex

T = TypeVar("T", bound=msgspec.Struct)
MAX_DOCUMENT: Final = 1_000_000
"""Bytes of an order or a result."""
UNKNOWN_JSON: Final = "unknown_json"
_HUMP: Final = regex(r"(?<=[a-z0-9])(?=[A-Z])")


def write_document(document: msgspec.Struct) -> bytes:
    """Return the JSON of an order or a result, for people too."""
    values = msgspec.to_builtins(document)
    if unknown := values.pop(UNKNOWN_JSON, ""):
        values = _merged(_unknown(json.loads(unknown), type(document)), values)
    return msgspec.json.format(msgspec.json.encode(values), indent=2) + b"\n"


def read_document(data: bytes, kind: type[T], what: str, code: Code) -> T:
    """Read JSON into a struct. Raise UsageError with this code."""
    require_size(data, what, code)
    try:
        values = json.loads(data.decode("utf-8"), object_pairs_hook=_object)
        msgspec.json.encode(values)  # half of a surrogate pair is no text
        if isinstance(values, dict) and (unknown := _unknown(values, kind)):
            values[UNKNOWN_JSON] = json.dumps(_merged(json.loads(values.get(UNKNOWN_JSON) or "{}"), unknown))
        return msgspec.convert(values, kind)
    except (ValueError, TypeError, RecursionError) as error:  # msgspec.ValidationError is a ValueError
        raise unreadable(what, code, error) from error


def require_size(data: bytes, what: str, code: Code) -> None:
    """Raise UsageError with this code for more bytes than a document has."""
    if len(data) > MAX_DOCUMENT:
        raise UsageError(f"the {what} has {len(data):,} bytes; {MAX_DOCUMENT:,} are the most", code=code)


def require_unknown(unknown_json: str, what: str, code: Code) -> None:
    """Raise UsageError with this code unless the fields of a newer version are a JSON object, or none."""
    try:
        known = isinstance(json.loads(unknown_json or "{}"), dict)
    except (ValueError, RecursionError) as error:
        raise unreadable(what, code, error) from error
    if not known:
        raise UsageError(f"{UNKNOWN_JSON} of the {what} is not a JSON object", code=code)


def unreadable(what: str, code: Code, error: Exception) -> UsageError:
    """Return what there is to say of a document that breaks its form."""
    return UsageError(f"the {what} cannot be read: {error}", code=code, remedy="See docs/work.md.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    named = [(_HUMP.sub("_", name).lower(), value) for name, value in pairs]
    names = [name for name, _ in named]
    if len(set(names)) != len(names):
        raise ValueError("a field occurs twice")
    return {name: value for name, value in named if value is not None}


def _unknown(values: dict[str, Any], kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the fields that a struct does not have, and those that its structs do not have."""
    known = {field.name: field.type for field in msgspec.structs.fields(kind)}
    unknown = {name: value for name, value in values.items() if name not in known}
    for name, inner in known.items():
        value = values.get(name)
        if isinstance(value, dict) and isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            unknown |= {name: below} if (below := _unknown(value, inner)) else {}
    return unknown


def _merged(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return both, objects in objects too; what is `over` wins."""
    both = {**under, **over}
    for name in under.keys() & over.keys():
        if isinstance(under[name], dict) and isinstance(over[name], dict):
            both[name] = _merged(under[name], over[name])
    return both
