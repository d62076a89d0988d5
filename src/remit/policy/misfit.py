"""What of a call's arguments its tool could not take, for tests and explanations of the policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remit.codes import Code
from remit.errors import SchemaError
from remit.policy.table import closest
from remit.tools.meta import ToolMeta
from remit.tools.schema import compile_schema


def misfits(tool: ToolMeta, args: Mapping[str, Any]) -> tuple[str, ...]:
    """Arguments that do not exist or have the wrong type, each in words; those that are left out are no misfits."""
    try:
        schema = compile_schema(tool.input_schema, closed=True)
    except SchemaError:  # such a tool is withheld, whatever it is given
        return ()
    declared = schema.schema.get("properties")
    names = tuple(declared) if isinstance(declared, Mapping) else ()
    found = []
    for problem in schema.problems(dict(args)):
        if problem.code is Code.missing:
            continue
        path = problem.path.removeprefix("/")
        hint = closest(path, names) if problem.code is Code.unknown_field else ""
        found.append(f"{path or 'args'} {problem.message}{'. ' if hint else ''}{hint}")
    return tuple(found)
