"""Tools in the form that a provider takes, and arguments in the form that their owner wants.

A provider refuses a whole request for the schema of one tool. So each tool is offered in a form that its provider
takes, or left out alone, with the reason. The owner's schema is checked at the gate in any case, so that a form may say
less than it; what it says more, such as nulls in the place of what is left out, is taken back before anyone checks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from remit.models.message import Block, Message, ToolCall
from remit.models.prompt import Ask, OfferedTools, ToolSpec
from remit.models.strict import Schema, openai_strict, types, without_nulls

_KEPT: Final = 64
_NOTE: Final = 1_000
"""Characters of a union in words."""
_BRANCHES: Final = 12
_BY_NAME: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_INNER: Final = frozenset(
    {"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems"}
)
_TYPES: Final = {str: "string", bool: "boolean", int: "integer", float: "number"}
_ROOT: Final = ("anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref", "$schema", "$id", "id")
"""Words that no provider takes at the root; what they say is said otherwise, or left to the gate."""


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider takes of the schemas of tools, besides an object without a union at the root."""

    strict: bool = False
    """Whether it can hold a model to a schema (strict.py)."""
    keys: str = ""
    """Pattern of the names that properties may have; empty: any."""


class SentTool(NamedTuple):
    """A tool as it is sent."""

    name: str
    description: str
    schema: Schema
    strict: bool
    plain: Schema
    """The schema before it was made strict."""


class Offers(NamedTuple):
    """The tools of a request."""

    tools: tuple[SentTool, ...] = ()
    left_out: Mapping[str, str] = {}
    """Tools that the provider would not take, each with the reason."""

    def decoded(self, message: Message) -> Message:
        """A model's message with the arguments of its calls as their owners declare them."""
        strict = {offer.name: offer.plain for offer in self.tools if offer.strict}
        if not any(call.name in strict for call in message.calls):
            return message
        blocks = [
            _decoded(block, strict[block.name]) if isinstance(block, ToolCall) and block.name in strict else block
            for block in message.blocks
        ]
        return msgspec.structs.replace(message, blocks=tuple(blocks))


class _UnfitError(Exception):
    """The provider takes no form of it."""


_cache: Final[dict[tuple[str, Dialect], Offers]] = {}


def offers_of(ask: Ask, dialect: Dialect) -> Offers:
    """The tools of a question, made once for all questions that offer them."""
    tools = ask.tools
    if not tools.specs:
        return Offers()
    key = (tools.digest, dialect)
    offers = _cache.get(key)
    if offers is None:
        offers = _cache[key] = _offers(tools, dialect)
        if len(_cache) > _KEPT:
            del _cache[next(iter(_cache))]
    return offers


def _offers(tools: OfferedTools, dialect: Dialect) -> Offers:
    offered, left_out = list[SentTool](), dict[str, str]()
    for spec in tools.specs:
        try:
            offered.append(_offer(spec, dialect))
        except _UnfitError as error:
            left_out[spec.name] = str(error)
    return Offers(tuple(offered), left_out)


def _offer(spec: ToolSpec, dialect: Dialect) -> SentTool:
    keys = re.compile(dialect.keys) if dialect.keys else None
    plain, note = _rooted(_today(spec.schema, keys))
    strict = openai_strict(plain) if dialect.strict else None
    description = f"{spec.description} {note}".strip()
    return SentTool(spec.name, description, strict or plain, strict is not None, plain)


def _decoded(call: ToolCall, schema: Schema) -> Block:
    """A call without the nulls of the strict form; what the model wrote otherwise stays as it is."""
    try:
        value = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return call
    decoded = without_nulls(value, schema)
    return call if decoded == value else msgspec.structs.replace(call, arguments=json.dumps(decoded))


# --- every level


def _today(schema: Any, keys: re.Pattern[str] | None) -> Schema:
    """A schema in the words of 2020-12, without properties whose names the provider does not take."""
    if not isinstance(schema, dict):
        return {} if schema is True else {"not": {}}
    today: Schema = {}
    for word, value in schema.items():
        if word in _BY_NAME and isinstance(value, dict):
            today[word] = {name: _today(entry, keys) for name, entry in value.items()}
        elif word in _LISTS and isinstance(value, list):
            today[word] = [_today(entry, keys) for entry in value]
        elif word in _INNER and isinstance(value, dict):
            today[word] = _today(value, keys)
        else:
            today[word] = value
    if keys is not None and isinstance(today.get("properties"), dict):
        _drop_odd(today, keys)
    _tuples(today, keys)
    _exclusive(today)
    listed = today.get("enum", [today["const"]] if "const" in today else ())
    kinds = {_TYPES.get(type(value)) for value in listed} if isinstance(listed, list) else set()
    if "type" not in today and len(kinds) == 1 and None not in kinds:  # some providers take no values without it
        today["type"] = kinds.pop()
    if "array" in types(today) and not isinstance(today.get("items"), dict) and "items" not in today:
        today["items"] = {}
    return today


def _drop_odd(schema: Schema, keys: re.Pattern[str]) -> None:
    odd = [name for name in schema["properties"] if not keys.fullmatch(name)]
    needed = [name for name in odd if name in (schema.get("required") or ())]
    if needed:
        raise _UnfitError(f"the provider does not take an argument named {needed[0]!r}")
    for name in odd:
        del schema["properties"][name]


def _tuples(schema: Schema, keys: re.Pattern[str] | None) -> None:
    """Turn the items of a tuple, and items that are a boolean, into the words of today."""
    items = schema.get("items")
    if isinstance(items, list):
        schema["prefixItems"] = [_today(item, keys) for item in items]
        more = schema.pop("additionalItems", True)
        schema["items"] = _today(more, keys)
    elif isinstance(items, bool):
        schema["items"] = _today(items, keys)


def _exclusive(schema: Schema) -> None:
    """Turn the bounds of draft 4, where `exclusive…` is a boolean, into numbers."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive) and bound in schema:
            schema[exclusive] = schema.pop(bound)


# --- the root


class _Parts(NamedTuple):
    """The parts that a schema and its branches say of an object."""

    properties: dict[str, list[Any]]
    required: list[str]


def _rooted(schema: Schema) -> tuple[Schema, str]:
    """A schema that is an object without a union at its root, and in words what that leaves unsaid.

    Raises _UnfitError.
    """
    parts, changed = _parts(schema, schema, 0), any(word in schema for word in _ROOT)
    rooted = {word: value for word, value in schema.items() if word not in _ROOT}
    rooted["type"] = "object"
    own = schema.get("properties")
    own = own if isinstance(own, dict) else {}
    rooted["properties"] = {
        name: own[name] if name in own else variants[0] if len(variants) == 1 else {"anyOf": variants}
        for name, variants in parts.properties.items()
    }
    if parts.required:
        rooted["required"] = parts.required
    elif "required" in rooted:
        del rooted["required"]
    if changed:
        for reference in _references(rooted):
            _resolved(rooted, reference)
    return rooted, " ".join(_words(schema, schema[word]) for word in ("anyOf", "oneOf") if _is_union(schema.get(word)))


def _parts(schema: Any, root: Schema, depth: int) -> _Parts:
    if depth > _BRANCHES:
        raise _UnfitError("its schema contains itself at the root")
    parts = _Parts({}, [])
    if not isinstance(schema, dict):
        return parts
    properties, required = schema.get("properties"), schema.get("required")
    for name, entry in (properties if isinstance(properties, dict) else {}).items():
        parts.properties.setdefault(name, []).append(entry)
    _add(parts.required, required if isinstance(required, list) else [])
    reference = schema.get("$ref")
    every = [_resolved(root, reference)] if isinstance(reference, str) else []
    branches = schema.get("allOf")
    for branch in [*every, *(branches if isinstance(branches, list) else ())]:
        inner = _parts(branch, root, depth + 1)
        _merge(parts.properties, inner.properties)
        _add(parts.required, inner.required)
    for word in ("anyOf", "oneOf"):
        if _is_union(schema.get(word)):
            options = [_parts(branch, root, depth + 1) for branch in schema[word]]
            for option in options:
                _merge(parts.properties, option.properties)
            _add(
                parts.required,
                [name for name in options[0].required if all(name in entry.required for entry in options)],
            )
    return parts


def _is_union(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _add(names: list[str], more: list[str]) -> None:
    names += [name for name in more if name not in names]


def _merge(properties: dict[str, list[Any]], more: dict[str, list[Any]]) -> None:
    for name, variants in more.items():
        known = properties.setdefault(name, [])
        known += [variant for variant in variants if variant not in known]


def _words(root: Schema, branches: list[Any]) -> str:
    """The sets of arguments of which a call has to have one."""
    sets = [_set(root, branch) for branch in branches[:_BRANCHES]]
    if not all(sets) or len(branches) > _BRANCHES:
        return ""
    return f"Give one of these sets of arguments: {' | '.join(sets)}."[:_NOTE]


def _set(root: Schema, branch: Any) -> str:
    parts = _parts(branch, root, 1)
    return ", ".join(f"{name}{_fixed(parts.properties.get(name, []))}" for name in parts.required)


def _fixed(variants: list[Any]) -> str:
    """The one value that a property has in a branch; empty if it may have others."""
    fixed = [variant["const"] for variant in variants if isinstance(variant, dict) and "const" in variant]
    return f"={json.dumps(fixed[0])}" if fixed else ""


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        reference = value.get("$ref")
        if isinstance(reference, str):
            yield reference
        for entry in value.values():
            yield from _references(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _references(entry)


def _resolved(root: Schema, reference: str) -> Any:
    """The schema that a local reference names (RFC 6901). Raises _UnfitError if there is none any more."""
    node: Any = root
    if reference != "#" and not reference.startswith("#/"):
        raise _UnfitError(f"its reference {reference} names no place in it")
    for part in reference[2:].split("/") if reference != "#" else ():
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and key.isdigit() and int(key) < len(node):
            node = node[int(key)]
        elif isinstance(node, dict) and key in node:
            node = node[key]
        else:
            raise _UnfitError(f"its reference {reference} points into a union at its root")
    return node
