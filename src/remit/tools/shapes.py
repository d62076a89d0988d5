"""Arguments and results of built-in tools as structs: the schema a caller sees and the values code uses are one."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Annotated, Any, TypeVar, cast

import msgspec
from msgspec import Meta

from remit.errors import ProviderError
from remit.tools.meta import JsonSchema

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
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


def unindented(schema: T) -> T:
    """Return a schema, or some, without the indentation of docstrings, which Python keeps up to 3.12: hashes agree."""
    if isinstance(schema, dict):
        return cast("T", {name: _unindented(name, value) for name, value in schema.items()})
    return cast("T", type(schema)(map(unindented, schema))) if isinstance(schema, list | tuple) else schema


def _unindented(name: str, value: Any) -> Any:
    if name in {"default", "const", "enum", "examples"}:
        return value
    return inspect.cleandoc(value) if name == "description" and isinstance(value, str) else unindented(value)


@cache
def struct_schema(shape: type[msgspec.Struct]) -> JsonSchema:
    """The JSON schema of a struct, complete in itself; the same object for the same struct."""
    [reference], parts = unindented(msgspec.json.schema_components((shape,), ref_template="#/$defs/{name}"))
    schema = parts.pop(reference["$ref"].rpartition("/")[2])
    return {**schema, "$defs": parts} if parts else schema


def arguments(shape: type[S], args: dict[str, Any]) -> S:
    """The arguments as their struct. Raises ProviderError: the schema gate may have been told to let them pass."""
    try:
        return msgspec.convert(args, shape)
    except msgspec.ValidationError as exc:
        raise ProviderError(str(exc)) from exc
