"""A tool's definition as clients take it.

Clients check a list as a whole: one tool that is worded against the protocol would take all tools of all servers away.
So what breaks the protocol is left out of the definition, and what means the same in a form that every client takes is
written so. Pins, policy and the gateway go by the server's own words; what is left out is logged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

_HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_SUPPORT: Final = ("forbidden", "optional", "required")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_execution(value: object) -> bool:
    return isinstance(value, dict) and value.get("taskSupport", "optional") in _SUPPORT


def _is_icons(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(icon, dict) and _is_text(icon.get("src")) for icon in value)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


_FIELDS: Final[Mapping[str, Callable[[object], bool]]] = {
    "title": _is_text,
    "description": _is_text,
    "annotations": _is_object,
    "execution": _is_execution,
    "icons": _is_icons,
    "_meta": _is_object,
    "outputSchema": _is_object,
}
"""Optional members, with what they have to be (schema of the protocol, 2025-11-25, `Tool`)."""


def fitting(definition: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The definition without members that break the protocol, and the names of what was left out."""
    left = [name for name, fits in _FIELDS.items() if name in definition and not fits(definition[name])]
    made = {name: value for name, value in definition.items() if name not in left}
    if "annotations" in made:
        wrong = [name for name in _HINTS if not isinstance(made["annotations"].get(name, False), bool)]
        wrong += ["title"] if not isinstance(made["annotations"].get("title", ""), str) else []
        made["annotations"] = {name: value for name, value in made["annotations"].items() if name not in wrong}
        left += [f"annotations.{name}" for name in wrong]
    for name in ("inputSchema", "outputSchema"):
        if name in made:
            made[name] = _plain(made[name])
    return made, left


def for_older(definition: dict[str, Any]) -> dict[str, Any]:
    """The same for clients before 2026-07-28: they take no output schema whose root is not an object."""
    schema = definition.get("outputSchema")
    if schema is None or schema.get("type") == "object":
        return definition
    return {name: value for name, value in definition.items() if name != "outputSchema"}


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with `true` and `false` for a property written as objects, which mean the same."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not any(isinstance(each, bool) for each in properties.values()):
        return schema
    said = {True: dict[str, Any](), False: {"not": dict[str, Any]()}}
    return {
        **schema,
        "properties": {name: said[each] if isinstance(each, bool) else each for name, each in properties.items()},
    }
