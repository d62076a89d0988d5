"""JSON Schemas of the files that a project's settings stand in: remit.toml, and the files that parts read beside it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

import remit.wiring.sections  # noqa: F401 - declares the settings of the parts that ship
from remit.capability import resolve
from remit.errors import UsageError
from remit.settings.schema import DIALECT, schema
from remit.wiring.capabilities import FIRST_PARTY

REMIT_TOML: Final = "remit.toml"


def schema_text(file: str) -> str:
    """Return the schema of a file by its name, as JSON (JSON Schema 2020-12). Raises UsageError."""
    return msgspec.json.format(msgspec.json.encode(_schema_of(file))).decode() + "\n"


def _schema_of(file: str) -> dict[str, Any]:
    if file == REMIT_TOML:
        return schema()
    files = {name: reference for part in FIRST_PARTY for name, reference in part.files.items()}
    if file not in files:
        known = ", ".join([REMIT_TOML, *files])
        raise UsageError(f"Remit knows no schema of {file}", remedy=f"Name one of {known}.")
    form = msgspec.json.schema(resolve(files[file]))
    return {"$schema": DIALECT, "title": file, **form}
