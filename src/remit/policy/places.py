"""Which arguments of a tool are paths, and what they are below: one rule covers a path, however a tool names it.

- `x-remit-below: "folder"` beside an argument says that it is a path below the one in the argument `folder`. A rule
  about it sees both as one path, as the tool does.
- A deny or ask rule about `path` is about every argument that is a path: its schema says so (`x-remit-role` or `format`
  is `path`), or its name does, such as `folder` or `file`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from remit.origins.roles import KEYWORD, role_of_name
from remit.policy.readings import starts_elsewhere
from remit.tools.meta import JsonSchema

BELOW: Final = "x-remit-below"
"""The keyword of a schema that names the argument with the folder."""
PATH: Final = "path"
"""The name in rules for every argument that is a path."""

_MOST: Final = 10_000


class Places(NamedTuple):
    """The paths of a schema."""

    below: Mapping[str, str]
    """Arguments that are paths below another argument."""
    named: tuple[str, ...]
    """Arguments that are paths, other than `path` itself and the folder it is below."""

    def concern(self, path: str, *, wide: bool) -> bool:
        """Whether a rule about an argument has to look at more, or at something else, than its value."""
        return path in self.below or (wide and path == PATH and bool(self.named))

    def values(self, args: Mapping[str, Any], path: str, *, wide: bool) -> tuple[list[Any], bool]:
        """Return what a rule about an argument looks at, and whether any of it is unknown."""
        values: list[Any] = []
        missing = path not in args
        if path in args:
            value = args[path]
            folder = self.below.get(path)
            if folder is None or wide:
                values.append(value)
            if folder is not None:
                whole = [_joined(one, args.get(folder)) for one in (value if isinstance(value, list) else [value])]
                values += [one for one in whole if one is not None]
                missing = None in whole
        if wide and path == PATH:
            values += [args[name] for name in self.named if args.get(name) is not None]
        return values, missing


_NOWHERE: Final = Places({}, ())
_known: dict[int, tuple[JsonSchema, Places]] = {}
"""By the identity of a schema, which is compared."""


def places_of(schema: JsonSchema | None) -> Places:
    """Return what the input schema of a tool says of paths."""
    if schema is None:
        return _NOWHERE
    found = _known.get(id(schema))
    if found is not None and found[0] is schema:
        return found[1]
    if len(_known) >= _MOST:
        _known.clear()
    places = _look(schema)
    _known[id(schema)] = (schema, places)
    return places


def _look(schema: JsonSchema) -> Places:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return _NOWHERE
    tables = {name: one for name, one in properties.items() if isinstance(one, Mapping)}
    below = {name: one[BELOW] for name, one in tables.items() if isinstance(one.get(BELOW), str)}
    named = [name for name, one in tables.items() if name != PATH and _is_path(name, one)]
    return Places(below, tuple(name for name in named if name not in below.values()) if PATH in below else tuple(named))


def _is_path(name: str, schema: Mapping[str, Any]) -> bool:
    if "path" in {schema.get(KEYWORD), schema.get("format")}:
        return True
    return schema.get("type", "string") in {"string", "array"} and role_of_name(name) == PATH


def _joined(value: Any, folder: Any) -> str | None:
    """A path below a folder as one path; None if unknown."""
    if not isinstance(value, str) or not isinstance(folder, str) or starts_elsewhere(value):
        return None
    above = folder.rstrip("/") or folder[:1]
    return f"{above}/{value}" if above.strip("/") else above + value
