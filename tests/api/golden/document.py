"""The API as it was promised, a line for each route, operation and schema.

`python -m tests.api.golden.document` writes the file after a change that is meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from remit.api.openapi import openapi
from remit.api.table import ROUTES

FILE: Final = Path(__file__).with_name("document.txt")


def lines() -> list[str]:
    """The table of routes and the OpenAPI document, but for the version and the list of all codes."""
    document: dict[str, Any] = openapi(ROUTES)
    document["info"]["version"] = ""
    document["components"]["schemas"]["Problem"]["properties"]["error_code"] = {}
    paths, schemas = document.pop("paths"), document["components"].pop("schemas")
    return [
        *sorted(_table()),
        _line("document", document),
        *(_line(f"{method.upper()} {path}", item) for path in sorted(paths) for method, item in _sorted(paths[path])),
        *(_line(f"schema {name}", schema) for name, schema in _sorted(schemas)),
    ]


def _table() -> Iterator[str]:
    for route in ROUTES:
        flags = [name for name in ("starts", "keeps_key") if getattr(route, name)]
        flags += ["stream"] if route.stream is not None else [route.media]
        codes = ",".join(code.name for code in route.codes)
        yield f"route {route.name}: {route.method} {route.path} {route.scope} {route.status} {' '.join(flags)} {codes}"


def _sorted(items: dict[str, Any]) -> list[tuple[str, Any]]:
    return sorted(items.items())


def _line(title: str, value: Any) -> str:
    return f"{title}: {msgspec.json.encode(value).decode()}"


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n", encoding="utf-8")
