"""Saying what is wrong with a value that a schema refused.

The validator only answers yes or no here: its own error lists copy the value into every message and grow
exponentially with nested alternatives, and both sides may be hostile. So this walks down the schema beside the value,
asks the validator at each step which way the refusal lies, and stops after MAX_PROBLEMS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

import msgspec

from remit.codes import Code
from remit.errors import SchemaError
from remit.tools.limits import Pointer, Schema, SchemaDocument, text_of

MAX_PROBLEMS: Final = 20
MAX_STEPS: Final = 60
"""Schemas passed on the way down; deeper, a problem is named without its reason."""

MAX_CHECKS: Final = 10_000
"""Parts of a value looked at; a call waits for its explanation."""

_ROOT: Final = "urn:remit:schema"
_UNRESERVED: Final = frozenset(b"/~-._0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_MESSAGES: Final = {
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "exclusiveMinimum": "must be greater than {}",
    "exclusiveMaximum": "must be less than {}",
    "multipleOf": "must be a multiple of {}",
    "minLength": "must be at least {} characters long",
    "maxLength": "must be at most {} characters long",
    "pattern": "must match the pattern {}",
    "format": "must be a valid {}",
    "minItems": "must have at least {} items",
    "maxItems": "must have at most {} items",
    "uniqueItems": "must not repeat an item",
    "minProperties": "must have at least {} fields",
    "maxProperties": "must have at most {} fields",
    "enum": "must be one of {}",
    "const": "must be {}",
}
"""Keywords that hold no schema of their own, so that each can be checked by itself."""

_NAMED_KINDS: Final = (
    (bool, "boolean"),  # before int, which it is too
    (str, "string"),
    (int, "integer"),
    (float, "number"),
    (dict, "object"),
    (list | tuple, "array"),
)

Check = Callable[[Any], bool]


class _EnoughError(Exception):
    """There are as many problems as anyone reads, or it would take too long to find more."""


class Explainer:
    """Finds the problems of values under one schema."""

    def __init__(self, document: SchemaDocument, validator_of: Callable[..., Any]) -> None:
        from jsonschema_rs import Registry  # noqa: PLC0415 - the schema was compiled, so it is loaded by now

        self.document = document
        self._validator_of = validator_of
        self._registry = Registry([(_ROOT, document.root)])
        dialect = document.root.get("$schema")
        self._dialect = {"$schema": dialect} if isinstance(dialect, str) else {}
        self._checks: dict[Pointer, Check] = {}

    def problems(self, value: Any) -> list[SchemaProblem]:
        """Return what is wrong with a value the validator refused: at least one problem, at most MAX_PROBLEMS."""
        search = _Search(self)
        with suppress(_EnoughError):
            search.look((), value, ())
        return list(search.problems) or [SchemaProblem(Code.type_mismatch, "", "is too large to say where it is wrong")]

    def accepts(self, at: Pointer, value: Any) -> bool:
        """Return whether the subschema at this place accepts a value."""
        check = self._checks.get(at)
        if check is None:
            schema = {**self._dialect, "$ref": f"{_ROOT}#{_fragment(at)}"}
            check = self._checks[at] = self._validator_of(schema, registry=self._registry).is_valid
        return check(value)

    def check_of(self, keyword: str, argument: Any) -> Check:
        """Hold that what one keyword alone says of a value; yes where it means nothing alone."""
        try:
            check: Check = self._validator_of({**self._dialect, keyword: argument}).is_valid
        except SchemaError:
            return _anything
        return check


class _Search:
    """One walk down a schema beside a value."""

    def __init__(self, explainer: Explainer) -> None:
        self.problems: dict[SchemaProblem, None] = {}
        self._explainer = explainer
        self._document = explainer.document
        self._depth = self._checks = self._reports = 0

    def look(self, at: Pointer, value: Any, path: Pointer) -> None:
        """Add what is wrong with a value that the schema at this place refuses."""
        schema = self._document.at(at)
        if schema is False:
            self._add(Code.unknown_field, path, "is not allowed")
            return
        before = self._reports
        self._depth += 1
        if self._depth <= MAX_STEPS and isinstance(schema, dict):
            if "type" in schema and not self._explainer.check_of("type", schema["type"])(value):
                self._add(Code.type_mismatch, path, _wrong_type(_listed(schema["type"]), value))
            else:
                self._keywords(schema, at, value, path)
        self._depth -= 1
        if self._reports == before:
            self._add(Code.type_mismatch, path, "does not satisfy the schema")

    def _keywords(self, schema: Schema, at: Pointer, value: Any, path: Pointer) -> None:
        for pointer, _ in self._document.targets(schema):
            self._descend(pointer, value, path)
        self._combined(schema, at, value, path)
        if isinstance(value, dict):
            self._required(schema, value, path)
            self._fields(schema, at, value, path)
        elif isinstance(value, list | tuple):
            for steps, index in _item_schemas(schema, len(value)):
                self._descend(at + steps, value[index], (*path, index))
            self._contained(schema, at, value, path)
        for keyword, message in _MESSAGES.items():
            if keyword in schema and not self._explainer.check_of(keyword, schema[keyword])(value):
                self._add(Code.type_mismatch, path, message.format(_shown(schema[keyword])))

    def _combined(self, schema: Schema, at: Pointer, value: Any, path: Pointer) -> None:
        for index in range(len(schema.get("allOf", ()))):
            self._descend((*at, "allOf", index), value, path)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                self._alternatives((*at, keyword), schema[keyword], value, path)
        if "not" in schema and self._accepts((*at, "not"), value):
            self._add(Code.type_mismatch, path, "is what the schema excludes")
        if "if" in schema:
            branch = "then" if self._accepts((*at, "if"), value) else "else"
            if branch in schema:
                self._descend((*at, branch), value, path)
        if isinstance(value, dict):
            for name in schema.get("dependentSchemas", ()):
                if name in value:
                    self._descend((*at, "dependentSchemas", name), value, path)

    def _alternatives(self, at: Pointer, branches: list[Any], value: Any, path: Pointer) -> None:
        accepted = sum(self._accepts((*at, index), value) for index in range(len(branches)))
        if accepted:
            if at[-1] == "oneOf" and accepted > 1:
                self._add(Code.type_mismatch, path, f"matches {accepted} alternatives that exclude each other")
            return
        followed = [self._followed(branch) for branch in branches]
        fitting = [index for index, branch in enumerate(followed) if _admits(branch, value)]
        if not fitting:
            self._add(
                Code.type_mismatch, path, _wrong_type([kind for each in followed for kind in _kinds(each) or ()], value)
            )
            return
        fitting = [index for index in fitting if _bears_tag(followed[index], value)] or fitting
        if len(fitting) == 1:
            self.look((*at, fitting[0]), value, path)
        else:
            self._add(Code.type_mismatch, path, f"matches none of {len(branches)} alternatives")

    def _followed(self, branch: Any) -> Any:
        """A schema that says more than where to look."""
        for _ in range(MAX_STEPS):
            if not isinstance(branch, dict) or "$ref" not in branch or "type" in branch:
                break
            branch = next((target for _, target in self._document.targets(branch)), True)
        return branch

    def _contained(self, schema: Schema, at: Pointer, value: Any, path: Pointer) -> None:
        if "contains" in schema:
            times = sum(self._accepts((*at, "contains"), item) for item in value)
            if times < schema.get("minContains", 1):
                self._add(Code.type_mismatch, path, "lacks an item it must contain")
            elif times > schema.get("maxContains", times):
                self._add(Code.type_mismatch, path, "contains an item too often")

    def _required(self, schema: Schema, value: Schema, path: Pointer) -> None:
        for name in _names(schema.get("required")):
            if name not in value:
                self._add(Code.missing, (*path, name), "is required")
        for keyword in ("dependentRequired", "dependencies"):
            for name, others in schema.get(keyword, {}).items():
                for other in _names(others) if name in value else ():
                    if other not in value:
                        self._add(Code.missing, (*path, other), f"is required beside {_shown(name)}")

    def _fields(self, schema: Schema, at: Pointer, value: Schema, path: Pointer) -> None:
        if "propertyNames" in schema:
            for name in value:
                if not self._accepts((*at, "propertyNames"), name):
                    self._add(Code.unknown_field, (*path, name), "is not an allowed name")
        for name in schema.get("properties", ()):
            if name in value:
                self._descend((*at, "properties", name), value[name], (*path, name))
        for pattern in schema.get("patternProperties", ()):
            for name in self._matching(pattern, value):
                self._descend((*at, "patternProperties", pattern), value[name], (*path, name))
        self._undeclared(schema, at, value, path)

    def _undeclared(self, schema: Schema, at: Pointer, value: Schema, path: Pointer) -> None:
        if "additionalProperties" in schema:
            for name in self._others(value, [schema]):
                self._other(schema["additionalProperties"], (*at, "additionalProperties"), value[name], (*path, name))
        if schema.get("unevaluatedProperties") is False:
            parts = list(self._document.parts(schema))
            if not any(_takes_others(part) for part in parts):
                for name in self._others(value, parts):
                    self._add(Code.unknown_field, (*path, name), "is not a known field")

    def _other(self, schema: Any, at: Pointer, value: Any, path: Pointer) -> None:
        if schema is False:
            self._add(Code.unknown_field, path, "is not a known field")
        else:
            self._descend(at, value, path)

    def _others(self, value: Schema, parts: list[Schema]) -> Iterator[str]:
        """Fields that none of these schemas declares."""
        known = {name for part in parts for name in part.get("properties", ())}
        for part in parts:
            for pattern in part.get("patternProperties", ()):
                known.update(self._matching(pattern, value))
        return (name for name in value if name not in known)

    def _matching(self, pattern: str, value: Schema) -> list[str]:
        return list(filter(self._explainer.check_of("pattern", pattern), value))

    def _accepts(self, at: Pointer, value: Any) -> bool:
        self._checks += 1
        if self._checks > MAX_CHECKS:
            raise _EnoughError
        return self._explainer.accepts(at, value)

    def _descend(self, at: Pointer, value: Any, path: Pointer) -> None:
        if not self._accepts(at, value):
            self.look(at, value, path)

    def _add(self, code: Code, path: Pointer, message: str) -> None:
        self._reports += 1
        self.problems[SchemaProblem(code, cut(text_of(path)), cut(message))] = None
        if len(self.problems) >= MAX_PROBLEMS:
            raise _EnoughError


def _anything(_value: Any) -> bool:
    return True


def _item_schemas(schema: Schema, length: int) -> Iterator[tuple[Pointer, int]]:
    """The schema each item of an array has to satisfy, in the old spelling (a list of items) and the new one."""
    first = "items" if isinstance(schema.get("items"), list) else "prefixItems"
    rest = "additionalItems" if first == "items" else "items"
    own = len(schema.get(first, ()))
    for index in range(length):
        if index < own:
            yield (first, index), index
        elif rest in schema:
            yield (rest,), index


def _names(value: Any) -> Iterable[str]:
    return value if isinstance(value, list) else ()


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def _kind(value: Any) -> str:
    """The JSON type of a value."""
    if value is None:
        return "null"
    for kind, name in _NAMED_KINDS:
        if isinstance(value, kind):
            return name
    return type(value).__name__


def _kinds(schema: Any) -> list[str] | None:
    """The types a schema admits, as far as it says so itself."""
    if not isinstance(schema, dict):
        return None
    if "type" in schema:
        return _listed(schema["type"])
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    return list(dict.fromkeys(_kind(value) for value in values)) if values else None


def _admits(schema: Any, value: Any) -> bool:
    kinds = _kinds(schema)
    return kinds is None or _kind(value) in kinds or ("number" in kinds and _kind(value) == "integer")


def _bears_tag(schema: Any, value: Any) -> bool:
    """Return whether a value has the fixed fields by which an alternative is told from the others."""
    if not isinstance(value, dict) or not isinstance(schema, dict):
        return False
    tags = {
        name: each.get("const", (each.get("enum") or (None,))[0])
        for name, each in schema.get("properties", {}).items()
        if isinstance(each, dict) and ("const" in each or len(each.get("enum", ())) == 1)
    }
    return bool(tags) and all(name in value and value[name] == tag for name, tag in tags.items())


def _takes_others(part: Schema) -> bool:
    """Return whether a part of a schema speaks of fields beyond those it declares."""
    return "additionalProperties" in part or part.get("unevaluatedProperties", False) is not False


def _wrong_type(kinds: list[str], value: Any) -> str:
    return f"must be {' or '.join(dict.fromkeys(kinds)) or 'something else'}, not {_kind(value)}"


def _shown(value: Any) -> str:
    """A value of the schema, never one of the caller's."""
    if isinstance(value, list):
        return ", ".join(_shown(each) for each in value[:MAX_PROBLEMS])
    return value if isinstance(value, str) and value.isidentifier() else msgspec.json.encode(value).decode()


def _fragment(at: Pointer) -> str:
    """A JSON pointer as the fragment of a URI."""
    octets = text_of(at).encode(errors="replace")
    return "".join(chr(octet) if octet in _UNRESERVED else f"%{octet:02X}" for octet in octets)


MAX_TEXT: Final = 200
"""Characters of a message or a path; what is wrong with a value never quotes the value."""


class SchemaProblem(msgspec.Struct, frozen=True):
    """Where a value does not satisfy its schema, and why."""

    code: Code
    """`missing`, `type_mismatch` or `unknown_field` (contract: tickets, "Gates")."""
    path: str
    """JSON pointer (RFC 6901) to the offender; empty for the whole value."""
    message: str

    def __str__(self) -> str:
        return f"{self.path or '/'} {self.message}"


def cut(text: str) -> str:
    """A text of at most MAX_TEXT characters."""
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
