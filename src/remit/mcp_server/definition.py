"""A tool's definition as clients take it.

Clients check a list as a whole: one tool that is worded against the protocol would take all tools of all servers away.
So what breaks the protocol is left out of the definition, and what means the same in a form that every client takes is
written so. Pins, policy and the gateway go by the server's own words; what is left out is logged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

_Fields = Mapping[str, Callable[[object], bool]]
"""Optional members of an object, with what they have to be (schema of the protocol, 2025-11-25)."""
_SUPPORT: Final = ("forbidden", "optional", "required")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_execution(value: object) -> bool:
    return isinstance(value, dict) and value.get("taskSupport", "optional") in _SUPPORT


def _is_icons(value: object) -> bool:
    return isinstance(value, list) and any(_is_icon(icon) for icon in value)


def _is_icon(value: object) -> bool:
    return isinstance(value, dict) and _is_text(value.get("src"))


def _is_sizes(value: object) -> bool:
    return isinstance(value, list) and all(_is_text(size) for size in value)


def _is_theme(value: object) -> bool:
    return value in ("light", "dark")


_TOOL: Final[_Fields] = {
    "title": _is_text,
    "description": _is_text,
    "annotations": _is_object,
    "execution": _is_execution,
    "icons": _is_icons,
    "_meta": _is_object,
    "outputSchema": _is_object,
}
_HINTS: Final[_Fields] = {
    "readOnlyHint": _is_flag,
    "destructiveHint": _is_flag,
    "idempotentHint": _is_flag,
    "openWorldHint": _is_flag,
    "title": _is_text,
}
_ICON: Final[_Fields] = {"mimeType": _is_text, "sizes": _is_sizes, "theme": _is_theme}


def fitting(definition: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the definition without members that break the protocol, and the names of what is missing from it."""
    shown, wrong = _sound(definition, _TOOL)
    if "annotations" in shown:
        shown["annotations"], names = _sound(shown["annotations"], _HINTS)
        wrong += [f"annotations.{name}" for name in names]
    if "icons" in shown:
        shown["icons"], names = _sound_icons(shown["icons"])
        wrong += names
    for name in ("inputSchema", "outputSchema"):
        if name in shown:
            shown[name] = _plain(shown[name])
    return shown, wrong


def _sound(value: Mapping[str, Any], fields: _Fields) -> tuple[dict[str, Any], list[str]]:
    """Return an object without the fields of a wrong shape, and their names."""
    wrong = [name for name, fits in fields.items() if name in value and not fits(value[name])]
    return {name: member for name, member in value.items() if name not in wrong}, wrong


def _sound_icons(icons: list[Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return those that are icons, each without its wrong fields, and the places of what is missing."""
    shown: list[dict[str, Any]] = []
    wrong: list[str] = []
    for place, icon in enumerate(icons):
        if not _is_icon(icon):
            wrong.append(f"icons[{place}]")
            continue
        sound, names = _sound(icon, _ICON)
        shown.append(sound)
        wrong += [f"icons[{place}].{name}" for name in names]
    return shown, wrong


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
    schemas = {True: dict[str, Any](), False: {"not": dict[str, Any]()}}
    return {
        **schema,
        "properties": {name: schemas[each] if isinstance(each, bool) else each for name, each in properties.items()},
    }
