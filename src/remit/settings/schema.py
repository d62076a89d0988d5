"""The JSON Schema of remit.toml, made of the declared settings, so that editors complete and check the file."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from remit.settings.section import Section
from remit.settings.table import Setting, imported, sections, table

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_REF: Final = "#/$defs/{name}"


def schema() -> dict[str, Any]:
    """Return the schema of remit.toml with the tables of the core and of the parts that ship.

    Other tables are left open: they are of parts that `app.capabilities` names.
    """
    rows, kinds = list(table().values()), entries()
    hints = [*(row.hint for row in rows), *kinds.values()]
    forms, defs = msgspec.json.schema_components(hints, schema_hook=lambda _: {}, ref_template=_REF)
    of_entries = dict(zip(kinds, forms[len(rows) :], strict=True))
    known = {row.key: _setting(row, form, of_entries.get(row.key)) for row, form in zip(rows, forms, strict=False)}
    tables = {name: _table(name, section, known, of_entries) for name, section in sections().items()}
    return {"$schema": DIALECT, "title": "remit.toml", "type": "object", "properties": tables, "$defs": defs}


def entries() -> dict[str, Any]:
    """Return the type of each entry of the settings that hold tables, by the setting's key."""
    return {row.key: imported(row.about.entry) for row in table().values() if row.about.entry}


def _setting(row: Setting, form: dict[str, Any], entry: dict[str, Any] | None) -> dict[str, Any]:
    if entry is not None:
        is_list = row.kind is tuple
        form = {"type": "array", "items": entry} if is_list else {"type": "object", "additionalProperties": entry}
    about = {"description": row.about.meaning, "default": msgspec.to_builtins(row.default)}
    return {**form, **about} if "$ref" not in form else {"allOf": [form], **about}


def _table(
    name: str, section: type[Section], known: dict[str, dict[str, Any]], of_entries: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    properties = {setting: known[f"{name}.{setting}"] for setting in section.__struct_fields__}
    rest = of_entries.get(f"{name}.{section.tables}", {"type": "object"}) if section.tables else False
    about = (section.__doc__ or "").partition("\n")[0]
    form = {"type": "object", "description": about, "properties": properties, "additionalProperties": rest}
    return {"anyOf": [known[f"{name}.{section.array}"], form], "description": about} if section.array else form
