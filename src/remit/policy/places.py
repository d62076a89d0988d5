"""Which arguments of a tool are paths or URLs, and what they lead to: one rule covers them, however a tool names them.

- `x-remit-below: "folder"` beside an argument says that it is a path below the one in the argument `folder`. A rule
  about it sees both as one path, as the tool does.
- A deny or ask rule about `path` is about every argument that is a path: its schema says so (`x-remit-role` or `format`
  is `path`), or its name does, such as `folder` or `file`.
- A rule about `host` is about the host of every argument that is a URL or a host, by the same signs. A host that
  clients may read differently, as of a URL with a user name or a backslash, is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from remit.origins.roles import KEYWORD, role_of_name
from remit.policy.readings import starts_elsewhere
from remit.regex import regex
from remit.tools.meta import JsonSchema

BELOW: Final = "x-remit-below"
"""The keyword of a schema that names the argument with the folder."""
PATH: Final = "path"
"""The name in rules for every argument that is a path."""
HOST: Final = "host"
"""The name in rules for the host of every argument that is a URL."""
_URLS: Final = frozenset({"url", "uri", "iri", "hostname"})
_HOST: Final = regex(
    r"(?:[a-z][a-z0-9+.-]*://)?((?:[a-z0-9_-]+\.)*[a-z0-9_-]+)\.?(?::[0-9]{1,5})?(?:[/?#][!-\[\]-~]*)?", re.IGNORECASE
)
"""A URL or host that every client reads alike: in ASCII, without a user name, blanks and backslashes."""

_MOST: Final = 10_000


class Places(msgspec.Struct, frozen=True):
    """The paths of a schema."""

    below: Mapping[str, str]
    """Arguments that are paths below another argument."""
    named: tuple[str, ...]
    """Arguments that are paths, other than `path` itself and the folder it is below."""
    urls: tuple[str, ...] = ()
    """Arguments that are URLs or hosts."""

    def concern(self, path: str, *, wide: bool) -> bool:
        """Return whether a rule about an argument has to look at more, or at something else, than its value."""
        if path == HOST and self.urls:
            return True
        return path in self.below or (wide and path == PATH and bool(self.named))

    def hosts(self, args: Mapping[str, Any]) -> tuple[list[Any], bool]:
        """The hosts of all URLs in the arguments, in lower case, and whether one of them is unknown."""
        addresses = [value for name in self.urls if (value := args.get(name)) is not None]
        hosts = [_host_of(value) for value in _each(addresses)]
        return [host for host in hosts if host is not None], None in hosts

    def values(self, args: Mapping[str, Any], path: str, *, wide: bool) -> tuple[list[Any], bool]:
        """Return what a rule about an argument looks at, and whether any of it is unknown."""
        if path == HOST and self.urls:
            return self.hosts(args)
        values: list[Any] = []
        missing = path not in args
        if path in args:
            value = args[path]
            folder = self.below.get(path)
            if folder is None or wide:
                values.append(value)
            if folder is not None:
                whole = [_joined(entry, args.get(folder)) for entry in (value if isinstance(value, list) else [value])]
                values += [entry for entry in whole if entry is not None]
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
    known = _known.get(id(schema))
    if known is not None and known[0] is schema:
        return known[1]
    if len(_known) >= _MOST:
        _known.clear()
    places = _look(schema)
    _known[id(schema)] = (schema, places)
    return places


def _look(schema: JsonSchema) -> Places:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return _NOWHERE
    tables = {
        name: property_schema for name, property_schema in properties.items() if isinstance(property_schema, Mapping)
    }
    below = {
        name: property_schema[BELOW]
        for name, property_schema in tables.items()
        if isinstance(property_schema.get(BELOW), str)
    }
    named = [name for name, property_schema in tables.items() if name != PATH and _is_path(name, property_schema)]
    urls = tuple(name for name, property_schema in tables.items() if _is_url(name, property_schema))
    apart = [name for name in named if name not in below.values()] if PATH in below else named
    return Places(below, tuple(apart), urls)


def _is_path(name: str, schema: Mapping[str, Any]) -> bool:
    if "path" in {schema.get(KEYWORD), schema.get("format")}:
        return True
    return schema.get("type", "string") in {"string", "array"} and role_of_name(name) == PATH


def _is_url(name: str, schema: Mapping[str, Any]) -> bool:
    if not _URLS.isdisjoint({schema.get(KEYWORD), schema.get("format")}):
        return True
    return schema.get("type", "string") in {"string", "array"} and role_of_name(name) == "url"


def _each(values: list[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list):
            yield from value
        else:
            yield value


def _host_of(value: Any) -> str | None:
    """The host of a URL; None where clients may differ about it."""
    match = _HOST.fullmatch(value) if isinstance(value, str) else None
    return match[1].lower() if match else None


def _joined(value: Any, folder: Any) -> str | None:
    """A path below a folder as one path; None if unknown."""
    if not isinstance(value, str) or not isinstance(folder, str) or starts_elsewhere(value):
        return None
    above = folder.rstrip("/") or folder[:1]
    return f"{above}/{value}" if above.strip("/") else above + value
