"""From the type hints of a function to JSON schemas, and between JSON and the values those hints speak of.

msgspec knows dataclasses, Structs, TypedDicts, enums, literals, unions, dates, UUIDs, decimals and bytes (as base64);
paths are added here. `Annotated[int, msgspec.Meta(ge=1, description="…")]` adds bounds and a description.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePath
from types import NoneType
from typing import Any, Final, get_type_hints

import msgspec

from remit.codes import Code, Row
from remit.errors import SchemaError
from remit.tools.meta import JsonSchema
from remit.tools.provider import CallContext, ToolResult, unindented

_REFERENCE: Final = "#/$defs/{name}"
_OURS: Final = {"CallContext": CallContext, "ToolResult": ToolResult}
"""Names a module may import for its type checker only."""
_ANYTHING: Final = (Any, object, inspect.Parameter.empty, ToolResult)
_SCALARS: Final = frozenset({str, int, float, bool, NoneType})
"""Types that are JSON as they stand."""
_REMEDY: Final = (
    "Use JSON types, dataclasses, msgspec Structs, TypedDicts, enums, literals, dates, UUIDs, decimals, bytes or paths."
)


class Signature(msgspec.Struct, frozen=True):
    """The arguments and results of a function, as schemas and as types."""

    input_schema: JsonSchema
    output_schema: JsonSchema | None
    """None where the return hint says nothing, or something JSON schema cannot express."""
    arguments: type[msgspec.Struct] | None
    """The arguments as one type; what has a default may be UNSET. None: they are given as JSON."""
    context: str | None
    """The parameter that takes the CallContext."""
    names: frozenset[str] | None
    """The arguments that it takes; None: any. Others only come past an open schema gate, and are left out."""


def schema_of(function: Callable[..., Any]) -> tuple[JsonSchema, JsonSchema | None]:
    """The input schema and, where expressible, the output schema of a function. Raises SchemaError."""
    signature = read(function)
    return signature.input_schema, signature.output_schema


def read(function: Callable[..., Any], *, leading: int = 0) -> Signature:
    """The signature of a function, without its first `leading` parameters.

    Raises SchemaError, which names the function and the parameter.
    """
    hints = hints_of(function)
    properties: JsonSchema = {}
    definitions: JsonSchema = {}
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    context = None
    parameters = list(inspect.signature(function).parameters.values())
    for parameter in parameters[leading:]:
        hint = _checked(function, parameter, hints)
        if hint is CallContext:
            context = parameter.name
            continue
        schema = _described(function, parameter, hint, definitions)
        if parameter.default is inspect.Parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint | msgspec.UnsetType, msgspec.UNSET))
            schema = _with_default(schema, parameter.default)
        properties[parameter.name] = schema
    required = [name for name, _, *default in fields if not default]
    return Signature(
        _object(properties, required, definitions),
        _output(hints.get("return", Any)),
        msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True),
        context,
        frozenset(properties),
    )


def given(function: Callable[..., Any], input_schema: JsonSchema) -> Signature:
    """The signature of a function whose arguments a ready schema describes.

    Raises SchemaError if the schema has a property, or the function demands a parameter, that the other does not know.
    """
    hints = hints_of(function)
    parameters = inspect.signature(function).parameters.values()
    context = next((parameter.name for parameter in parameters if hints.get(parameter.name) is CallContext), None)
    named = {
        parameter.name: parameter
        for parameter in parameters
        if parameter.kind in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}
    }
    named.pop(context or "", None)
    properties = input_schema.get("properties", {})
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    unknown = [] if takes_any else sorted(set(properties) - set(named))
    demanded = {name for name, parameter in named.items() if parameter.default is parameter.empty}
    missing = sorted(demanded - set(input_schema.get("required", ())))
    if unknown or missing:
        reason = f"takes no {unknown[0]}" if unknown else f"demands {missing[0]}, which the schema does not require"
        raise SchemaError(
            f"{_title(function)} {reason}", remedy="Give it a parameter for each property, or **arguments."
        )
    names = None if takes_any else frozenset(named)
    return Signature(input_schema, _output(hints.get("return", Any)), None, context, names)


def from_json(value: Any, kind: Any, *, strict: bool = True) -> Any:
    """A JSON value as the type a hint names; not `strict`: text too, as a person types it. Raises ValidationError."""
    try:
        return msgspec.convert(value, kind, dec_hook=_decoded, strict=strict)
    except msgspec.ValidationError:
        # JSON schema's integer includes 1.0, which is the same number as 1 (RFC 8785 writes both alike).
        return msgspec.convert(_whole(value), kind, dec_hook=_decoded)


def to_json(value: Any) -> Any:
    """A value as JSON types only: dict with str keys, list, str, int, float, bool, None. Raises TypeError."""
    if type(value) in _SCALARS:
        return value
    return _arrays(msgspec.to_builtins(value, str_keys=True, enc_hook=_encoded))


def returned(function: Callable[..., Any]) -> Any:
    """The type that a function returns; Any if it says none, or one that is not JSON value."""
    hint = hints_of(function).get("return", Any)
    return Any if hint in _ANYTHING else hint


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the type hints of a function, with what stands in `Annotated`. Raises SchemaError."""
    known = {**_OURS, **getattr(inspect.unwrap(function), "__globals__", {})}
    try:
        return get_type_hints(function, globalns=known, include_extras=True)
    except NameError as error:
        names = inspect.get_annotations(function)
        where = next((name for name, text in names.items() if isinstance(text, str) and str(error.name) in text), "")
        raise SchemaError(
            f"{_title(function)}: the type hint of {where or 'a parameter'} uses {error.name}, which is not known",
            remedy="Import the type at module level, outside `if TYPE_CHECKING`.",
        ) from error


def _checked(function: Callable[..., Any], parameter: inspect.Parameter, hints: Mapping[str, Any]) -> Any:
    """The hint of a parameter that can be passed by name."""
    if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
        raise SchemaError(
            f"{_title(function)}: parameter {parameter.name} cannot be passed by name",
            remedy="Give every parameter a name; take a list or a dict instead of * and **.",
        )
    if parameter.name not in hints:
        raise SchemaError(
            f"{_title(function)}: parameter {parameter.name} has no type hint",
            remedy="Add one; Any takes any JSON value.",
        )
    hint = hints[parameter.name]
    return Any if hint is object else hint


def _described(
    function: Callable[..., Any], parameter: inspect.Parameter, hint: Any, definitions: JsonSchema
) -> JsonSchema:
    try:
        schema, named = _schema(hint)
    except TypeError as error:
        reason = str(error).splitlines()[-1].removesuffix(" is not supported")
        raise SchemaError(
            f"{_title(function)}: the type hint of parameter {parameter.name} has no JSON schema: {reason}",
            remedy=_REMEDY,
        ) from error
    for name, definition in named.items():
        if definitions.setdefault(name, definition) != definition:
            raise SchemaError(
                f"{_title(function)}: parameter {parameter.name} uses a second type called {name}",
                remedy="Give one of the two another name.",
            )
    return schema


def _schema(hint: Any) -> tuple[JsonSchema, JsonSchema]:
    schema_components = msgspec.json.schema_components((hint,), schema_hook=_path_schema, ref_template=_REFERENCE)
    (schema,), definitions = unindented(schema_components)
    return schema, definitions


def _with_default(schema: JsonSchema, default: Any) -> JsonSchema:
    try:
        return {**schema, "default": to_json(default)}
    except (TypeError, ValueError):  # a default only Python can hold: the parameter is optional all the same
        return schema


def _object(properties: JsonSchema, required: list[str], definitions: JsonSchema) -> JsonSchema:
    schema: JsonSchema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if definitions:
        schema["$defs"] = definitions
    return schema


def _output(hint: Any) -> JsonSchema | None:
    if hint in _ANYTHING:
        return None
    try:
        schema, definitions = _schema(NoneType if hint is None else hint)
    except TypeError:
        return None
    return {**schema, "$defs": definitions} if definitions else schema


def _title(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{getattr(function, '__qualname__', function)}"


def _is_path(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, PurePath)


def _path_schema(kind: type) -> JsonSchema:
    if _is_path(kind):
        return {"type": "string"}
    raise NotImplementedError


def _decoded(kind: type, value: Any) -> Any:
    if kind is object:
        return value
    if isinstance(value, str):
        return kind(value)
    raise TypeError(f"Expected a path, got `{type(value).__name__}`")


def _encoded(value: Any) -> Any:
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{type(value).__qualname__} is not a JSON type")


def _arrays(value: Any) -> Any:
    """Builtins with every tuple as a list, and every code by its name."""
    if isinstance(value, Row):
        return Code(value).name
    if isinstance(value, dict):
        return {name: _arrays(item) for name, item in value.items()}
    return _each(value, _arrays) if isinstance(value, list | tuple) else value


def _whole(value: Any) -> Any:
    """JSON with every float that is an integer as an int."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    return _each(value, _whole) if isinstance(value, list | tuple) else value


def _each(items: Iterable[Any], change: Callable[[Any], Any]) -> list[Any]:
    return [change(item) for item in items]
