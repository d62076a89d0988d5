"""Closing a schema: an undeclared field is a mistake, and strict mode says so."""

from __future__ import annotations

from typing import Any, Final

from remit.tools.limits import Schema, SchemaDocument

_OTHERS: Final = ("additionalProperties", "unevaluatedProperties")
"""Keywords that say what becomes of fields not declared."""
_DECLARED: Final = ("properties", "patternProperties")
_BY_NAME: Final = ("properties", "$defs")
"""Keywords with a schema for each name; the next ones have a schema, or a list of them."""
_NESTED: Final = ("items", "prefixItems", "additionalProperties", "anyOf", "allOf", "oneOf")
_WITHOUT_UNEVALUATED: Final = ("draft-03", "draft-04", "draft-06", "draft-07")


def closed(document: SchemaDocument) -> Schema:
    """The root, closed, unless it states itself what becomes of other fields, or no field is declared at all.

    Where only the root declares fields, `additionalProperties` closes it. Where it is combined from schemas that
    declare some of their own, that would forbid theirs, so that it takes `unevaluatedProperties` (draft 2019-09 and
    later); an older draft has nothing that would be right, and its schema stays open.
    """
    root = document.root
    if _names(root, _OTHERS):
        return root
    declaring = [part for part in document.parts() if _names(part, (*_DECLARED, *_OTHERS))]
    if all(part is root for part in declaring):
        return {**root, "additionalProperties": False} if declaring else root
    if any(draft in str(root.get("$schema")) for draft in _WITHOUT_UNEVALUATED):
        return root
    return {**root, "unevaluatedProperties": False}


def closed_within(schema: Any) -> Any:
    """A schema that types stand behind, with every object in it closed that declares its fields.

    A type drops what it does not know: the approver would see it, and it would not be what runs (rule 15).
    """
    if isinstance(schema, list):
        return [closed_within(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        word: {name: closed_within(entry) for name, entry in value.items()}
        if word in _BY_NAME and isinstance(value, dict)
        else closed_within(value)
        if word in _NESTED
        else value
        for word, value in schema.items()
    }
    return {**found, "additionalProperties": False} if "properties" in found and not _names(found, _OTHERS) else found


def _names(schema: Schema, keywords: tuple[str, ...]) -> bool:
    return any(keyword in schema for keyword in keywords)
