"""Arguments and results of built-in tools as structs: the schema a caller sees and the values code uses are one."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta

from remit.errors import ProviderError
from remit.tools.meta import JsonSchema

T = TypeVar("T", bound=msgspec.Struct)
_VALUES: Final = ("default", "const", "enum", "examples")
"""Keywords that hold values and no schemas."""
Url = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=2_048,
        description="The page's address; http or https.",
        extra_json_schema={"x-remit-role": "url"},
    ),
]
"""An argument that is a page's address; rules about hosts and the origin of addresses apply to it."""


def unindented(schema: Any, key: str = "") -> Any:
    """Return a schema, or some, without the indentation of docstrings, which Python keeps up to 3.12: hashes agree."""
    if isinstance(schema, str) and key == "description":
        return inspect.cleandoc(schema)
    if isinstance(schema, dict) and key not in _VALUES:
        return {name: unindented(part, name) for name, part in schema.items()}
    return [*map(unindented, schema)] if isinstance(schema, list | tuple) and key not in _VALUES else schema


@cache
def struct_schema(shape: type[msgspec.Struct]) -> JsonSchema:
    """The JSON schema of a struct, complete in itself; the same object for the same struct."""
    [reference], parts = unindented(msgspec.json.schema_components((shape,), ref_template="#/$defs/{name}"))
    schema = parts.pop(reference["$ref"].rpartition("/")[2])
    return {**schema, "$defs": parts} if parts else schema


def arguments(shape: type[T], args: dict[str, Any]) -> T:
    """The arguments as their struct. Raises ProviderError: the schema gate may have been told to let them pass."""
    try:
        return msgspec.convert(args, shape)
    except msgspec.ValidationError as exc:
        raise ProviderError(str(exc)) from exc
