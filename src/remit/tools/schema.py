"""The schema gate: a JSON schema, compiled once, and what is wrong with a value that does not satisfy it.

A schema comes from the tool's owner, a value from its caller; neither is trusted. So nothing is ever
fetched, regular expressions run in linear time, and limits.py bounds what a check can cost.

What a tool's schema declares for what a call leaves out: shown to the approver of the call, and never put into it.

A default is an annotation (JSON Schema 2020-12, section 9.2): the tool fills it in by itself. It stands in the schema,
so that the contract which an approval is bound to covers it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

from remit.canonical import MAX_DEPTH, digest
from remit.codes import Code
from remit.errors import NotCanonicalError, SchemaError
from remit.tools.explain import SchemaProblem, cut
from remit.tools.limits import MAX_PATTERN_BYTES, Pointer, Schema, SchemaDocument, check_limits, closed_within, text_of
from remit.tools.limits import closed as close

if TYPE_CHECKING:
    from jsonschema_rs import Validator

    from remit.tools.explain import Explainer


_KEPT: Final = 4_096
"""Compiled schemas kept for the next time one is listed; the oldest goes first."""
_cache: Final[dict[tuple[str, bool, bool], CompiledSchema]] = {}


class CompiledSchema:
    """A schema that can check values in about a microsecond."""

    __slots__ = ("_document", "_explainer", "_is_valid", "_recursive", "hash")

    def __init__(
        self, document: SchemaDocument, schema_digest: str, is_valid: Callable[[Any], bool], *, recursive: bool
    ) -> None:
        self.hash = schema_digest
        """Digest of the schema as its owner wrote it."""
        self._document = document
        self._is_valid = is_valid
        self._recursive = recursive
        self._explainer: Explainer | None = None

    def admits(self, value: Any) -> bool:
        """Return whether a value satisfies the schema, without the words that `problems` finds. Never raises."""
        try:
            return not (self._recursive and not _shallow(value)) and self._is_valid(value)
        except (SchemaError, ValueError, TypeError, OverflowError):
            return False

    def problems(self, value: Any) -> list[SchemaProblem]:
        """Return what is wrong with a value, the first twenty; empty if it satisfies the schema. Never raises."""
        try:
            # Only a recursive schema follows an instance to any depth, and a very deep one would end the process.
            if self._recursive and not _shallow(value):
                return [SchemaProblem(Code.type_mismatch, "", f"is nested deeper than {MAX_DEPTH} levels")]
            if self._is_valid(value):
                return []
            return self._explain(value)
        except SchemaError as error:  # a part of it that was not needed until now
            return [SchemaProblem(Code.schema_invalid, "", cut(f"cannot be checked: {error.message}"))]
        except (ValueError, TypeError, OverflowError) as error:  # met something that is not JSON
            return [SchemaProblem(Code.type_mismatch, "", cut(f"cannot be checked: {error}"))]

    def _explain(self, value: Any) -> list[SchemaProblem]:
        if self._explainer is None:
            from remit.tools.explain import Explainer  # noqa: PLC0415 - only a mistake needs it

            self._explainer = Explainer(self._document, validator_of)
        return self._explainer.problems(value)

    def defaults(self, value: Any) -> dict[str, Any] | None:
        """The defaults that the schema declares for what a value leaves out, by JSON pointer; None: too many."""
        return defaults_of(self._document, value)

    @property
    def schema(self) -> Schema:
        """Return what values are checked against: closed, where that was asked for."""
        return self._document.root


class DeferredSchema(CompiledSchema):
    """A schema that is known to be usable: compiled with its first use."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[], CompiledSchema]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        if name not in CompiledSchema.__slots__:
            raise AttributeError(name)
        compiled = self._make()
        for slot in CompiledSchema.__slots__:
            setattr(self, slot, getattr(compiled, slot))
        return getattr(self, name)


def schema_hash(schema: Schema) -> str:
    """The identity of a schema as its owner wrote it (contract: versioning, "Identity"). Raises NotCanonicalError."""
    return digest(schema)


def compile_schema(schema: object, *, closed: bool, any_root: bool = False, typed: bool = False) -> CompiledSchema:
    """A schema ready to check values; the same object for the same schema.

    `closed` refuses fields the root does not declare; where it is `typed`, made of types, also those that no object
    below the root declares. Arguments are an object, so that a root which admits none is an
    error, unless `any_root` (results may be anything). Raises SchemaError where the schema is unusable, goes beyond the
    limits, or points outside itself.
    """
    if not isinstance(schema, dict):
        raise SchemaError(f"a schema is a JSON object, not {_kind(schema)}", remedy='Use {"type": "object"}.')
    if not any_root:
        _check_root(schema)
    try:
        key = schema_hash(schema), closed, closed and typed
    except NotCanonicalError as error:
        raise SchemaError(f"the schema has no canonical form: {error.message}", remedy=error.remedy) from error
    compiled = _cache.get(key)
    if compiled is None:
        compiled = _cache[key] = _compile(schema, key[0], closed=closed, typed=typed)
        if len(_cache) > _KEPT:
            del _cache[next(iter(_cache))]
    return compiled


def validator_of(schema: Schema, **options: Any) -> Validator:
    """A jsonschema-rs validator under the gate's guards. Raises SchemaError."""
    from jsonschema_rs import RegexOptions, ValidationError, validator_for  # noqa: PLC0415 - not needed to start

    limits = RegexOptions(size_limit=MAX_PATTERN_BYTES, dfa_size_limit=MAX_PATTERN_BYTES)
    try:
        return validator_for(schema, offline=True, pattern_options=limits, **options)
    except ValidationError as error:
        where = text_of(tuple(error.instance_path))
        raise SchemaError(cut(f"{where or 'the schema'}: {error.message}")) from error


def _compile(schema: Schema, schema_digest: str, *, closed: bool, typed: bool) -> CompiledSchema:
    shape = check_limits(schema)
    document = shape.document.with_root(deepcopy(schema))  # the owner may go on writing in its own
    if closed:
        document = document.with_root(closed_within(document.root) if typed else close(document))
    check = validator_of(document.root).is_valid
    return CompiledSchema(document, schema_digest, check, recursive=shape.recursive)


def _check_root(schema: Schema) -> None:
    declared = schema.get("type", "object")
    if "object" not in (declared if isinstance(declared, list) else [declared]):
        raise SchemaError(
            f"the root admits {cut(str(declared))}, but arguments are an object",
            remedy='Give the root "type": "object" and its fields as properties.',
        )


def _kind(schema: object) -> str:
    return "null" if schema is None else f"a {type(schema).__name__}"


def _shallow(value: Any) -> bool:
    """Return whether a value has no more levels than a recorded one may have."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [item for each in level for item in _items(each) if isinstance(item, dict | list | tuple)]
        if not level:
            return True
    return False


def _items(container: Any) -> Any:
    if isinstance(container, dict):
        return container.values()
    return container if isinstance(container, list | tuple) else ()


_MOST: Final = 1_000
"""Defaults of one call; a schema may declare more than anyone reads."""
_STEPS: Final = 10_000
"""Objects and lists of one call that are looked into."""
_EITHER: Final = ("anyOf", "oneOf")
_DEFAULT: Final = "default"


def defaults_of(document: SchemaDocument, value: Any) -> dict[str, Any] | None:
    """Return the defaults that hold where a value leaves something out, by JSON pointer (RFC 6901).

    Where several alternatives of a schema fit the value, or none, nothing is said of what is below. None: it would take
    too long to say, or to read.
    """
    defaults: dict[str, Any] = {}
    pending: deque[tuple[Schema, Any, Pointer]] = deque([(document.root, value, ())])
    for _ in range(_STEPS):
        if not pending:
            return defaults
        schema, item, place = pending.popleft()
        for name, below in _below(document, schema, item):
            here = (*place, name)
            if isinstance(name, int) or name in item:
                left = item[name]
            else:
                part = next((part for part in _parts(document, below, None) if _DEFAULT in part), None)
                if part is None or len(here) > MAX_DEPTH:
                    continue
                left = defaults.setdefault(text_of(here), part[_DEFAULT])
            if isinstance(left, dict | list):
                pending.append((below, left, here))
        if len(defaults) > _MOST:
            break
    return None


def _below(document: SchemaDocument, schema: Schema, item: Any) -> Iterator[tuple[str | int, Schema]]:
    """Yield each member or item that is declared, and each that is there, with its schema."""
    for part in _parts(document, schema, item):
        if isinstance(item, dict):
            declared = part.get("properties")
            declared = declared if isinstance(declared, dict) else {}
            others = part.get("additionalProperties")
            yield from ((name, below) for name, below in declared.items() if isinstance(below, dict))
            if isinstance(others, dict):
                yield from ((name, others) for name in item if name not in declared)
        elif isinstance(item, list):
            first = part.get("prefixItems")
            first = first if isinstance(first, list) else []
            yield from ((at, below) for at, below in enumerate(first[: len(item)]) if isinstance(below, dict))
            if isinstance(part.get("items"), dict):
                yield from ((at, part["items"]) for at in range(len(first), len(item)))


def _parts(document: SchemaDocument, schema: Schema, item: Any) -> Iterator[Schema]:
    """Yield a schema and all that it is combined from at the same place, of alternatives the only one that fits."""
    stack: list[Any] = [schema]
    ids: set[int] = set()
    while stack:
        part = stack.pop(0)
        if not isinstance(part, dict) or id(part) in ids:
            continue
        ids.add(id(part))
        yield part
        stack += [target for _, target in document.targets(part)]
        both = part.get("allOf")
        stack += both if isinstance(both, list) else []
        for keyword in _EITHER:
            choices = part.get(keyword)
            fitting = (
                [choice for choice in choices if _fits(document, choice, item)] if isinstance(choices, list) else []
            )
            stack += fitting if len(fitting) == 1 else []


def _fits(document: SchemaDocument, schema: Any, item: Any) -> bool:
    """Return whether a value can be what an alternative means: by its type, what it requires and its constants."""
    if not isinstance(schema, dict):
        return False
    kind = "object" if isinstance(item, dict) else "array" if isinstance(item, list) else ""
    for part in (schema, *(target for _, target in document.targets(schema))):
        if not isinstance(part, dict):
            return False
        declared = part.get("type", kind)
        if kind not in (declared if isinstance(declared, list) else [declared]):
            return False
        if isinstance(item, dict) and not _has_required(part, item):
            return False
    return bool(kind)


def _has_required(part: Schema, item: dict[str, Any]) -> bool:
    if not set(part.get("required", ())) <= item.keys():
        return False
    declared = part.get("properties")
    for name, below in declared.items() if isinstance(declared, dict) else ():
        if name in item and isinstance(below, dict):
            allowed = [below["const"]] if "const" in below else below.get("enum", [item[name]])
            if item[name] not in allowed:
                return False
    return True
