"""JSON Schemas of the files that a project's settings stand in: remit.toml, and the files that parts read beside it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from typing import Any, Final, get_args

import msgspec

import remit.wiring.sections  # noqa: F401 - declares the settings of the parts that ship
from remit.capability import resolve
from remit.errors import UsageError
from remit.settings.schema import DIALECT, entries, schema
from remit.tools.provider import unindented
from remit.wiring.capabilities import FIRST_PARTY

REMIT_TOML: Final = "remit.toml"


def schema_text(file: str) -> str:
    """Return the schema of a file by its name, as JSON (JSON Schema 2020-12). Raises UsageError."""
    return msgspec.json.format(msgspec.json.encode(_schema_of(file))).decode() + "\n"


def _schema_of(file: str) -> dict[str, Any]:
    if file == REMIT_TOML:
        return _described(unindented(schema()), entries().values())
    files = {name: reference for part in FIRST_PARTY for name, reference in part.files.items()}
    if file not in files:
        known = ", ".join([REMIT_TOML, *files])
        raise UsageError(f"Remit knows no schema of {file}", remedy=f"Name one of {known}.")
    struct = resolve(files[file])
    return _described({"$schema": DIALECT, "title": file, **unindented(msgspec.json.schema(struct))}, [struct])


def _described(form: dict[str, Any], hints: Iterable[Any]) -> dict[str, Any]:
    """Return a schema with what the source says of each key of its tables: msgspec knows nothing of that."""
    structs = dict[str, type[msgspec.Struct]]()
    for hint in hints:
        _gather(hint, structs)
    for name, struct in structs.items():
        names = dict(zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True))
        for field, meaning in _meanings(struct):
            form["$defs"][name]["properties"][names[field]]["description"] = meaning
    return form


def _gather(hint: Any, structs: dict[str, type[msgspec.Struct]]) -> None:
    if not (isinstance(hint, type) and issubclass(hint, msgspec.Struct)):
        for part in get_args(hint):
            _gather(part, structs)
    elif hint.__name__ not in structs:
        structs[hint.__name__] = hint
        for field in msgspec.structs.fields(hint):
            _gather(field.type, structs)


def _meanings(struct: type[msgspec.Struct]) -> Iterator[tuple[str, str]]:
    """Give each field that a string follows, with that string; those of a base first."""
    kinds = [kind for kind in reversed(struct.__mro__) if issubclass(kind, msgspec.Struct) and kind.__annotations__]
    bodies = [ast.parse(inspect.getsource(kind)).body[0] for kind in kinds]
    for field, text in chain.from_iterable(pairwise(getattr(body, "body", ())) for body in bodies):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            yield ast.unparse(field.target), " ".join(str(text.value.value).split())
