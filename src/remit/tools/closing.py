"""Closing the root of a schema: an undeclared field is a mistake, and strict mode says so."""

from __future__ import annotations

from typing import Final

from remit.tools.subschemas import Document, Schema

_OTHERS: Final = ("additionalProperties", "unevaluatedProperties")
"""Keywords that say what becomes of fields not declared."""
_DECLARED: Final = ("properties", "patternProperties")
_WITHOUT_UNEVALUATED: Final = ("draft-03", "draft-04", "draft-06", "draft-07")


def closed(document: Document) -> Schema:
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


def _names(schema: Schema, keywords: tuple[str, ...]) -> bool:
    return any(keyword in schema for keyword in keywords)
