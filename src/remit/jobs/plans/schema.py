"""The grammar of `taskgraph-v1`: fields, forms and bounds, as a JSON schema (2020-12) for editors and other programs.

check.py reads its fields, forms and bounds from here, and is stricter: a schema cannot say that a name is known, or
that nodes do not wait for each other.
"""

from __future__ import annotations

import re
from typing import Any, Final, get_args

from remit.jobs.plans import shape
from remit.jobs.plans.plan import MAX_ITEMS_CEILING, SCHEMA_VERSION, InputType, OnFailure

MAX_NODES: Final = 2_000
MAX_CONCURRENCY: Final = 1_000

ID: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")
INPUT_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
TOOL: Final = re.compile(r"[a-z0-9_]+(?:\.[A-Za-z0-9_-]+)*")
RECIPE: Final = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*")
SIGNAL: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}")

RECIPES: Final = {"model": "ask_model", "agent": "agent"}
"""Recipes of Remit's own that a node names in one word, with their input."""
ACTIONS: Final = ("tool", "recipe", *RECIPES, "wait")
HOMES: Final = {"args": "tool", "input": "recipe", "timeout": "tool", "undo": "tool"}
"""Fields of a node that belong to one action."""
BOUNDS: Final = ("max_items", "concurrency")
"""Fields of a node that belong to `for_each`."""
WAITS: Final = ("timer", "signal", "human")
WAIT_HOMES: Final = {"timeout": ("signal", "human"), "details": ("human",)}
"""Fields of a wait, and the waits that they belong to."""


def _form(form: re.Pattern[str]) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^{form.pattern}$"}


def _object(required: tuple[str, ...], properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    needs = {"required": list(required)} if required else {}
    return {"type": "object", "additionalProperties": False, **needs, "properties": properties, **more}


def _wait(kind: str) -> dict[str, Any]:
    """A wait of this kind has no fields that belong to others."""
    others = [{"required": [name]} for name, homes in WAIT_HOMES.items() if kind not in homes]
    return {"required": [kind]} | ({"not": {"anyOf": others}} if others else {})


_TEXT: Final = {"type": "string"}
_VALUES: Final = {"type": "object", "description": "Values by name; texts in it may hold references."}
_DURATION: Final = _form(shape.FORM) | {"minLength": 2, "description": "Such as 500ms, 10s or 1h30m."}
_REFERENCE: Final = {
    "type": "string",
    "pattern": "^\\$\\{.+\\}$",
    "description": "One reference, such as ${find.value}.",
}

INPUT: Final = _object(
    ("type",),
    {
        "type": {"enum": list(get_args(InputType))},
        "default": {"description": "The value where none is given; without it the input has to be given."},
        "description": _TEXT,
    },
)
WAIT: Final = _object(
    (),
    {
        "timer": _DURATION,
        "signal": _form(SIGNAL),
        "human": {"type": "string", "minLength": 1, "description": "The question; it may hold references."},
        "timeout": _DURATION,
        "details": {"description": "What the person is shown with the question; it may hold references."},
    },
    oneOf=[_wait(kind) for kind in WAITS],
)
UNDO: Final = _object(
    ("tool",),
    {"tool": _form(TOOL), "args": _VALUES},
    description="The call that undoes this one; it may refer to this node.",
)
NODE: Final = _object(
    ("id",),
    {
        "id": _form(ID),
        "description": _TEXT,
        "tool": _form(TOOL),
        "recipe": _form(RECIPE),
        **dict.fromkeys(RECIPES, _VALUES),
        "wait": WAIT,
        "args": _VALUES,
        "input": _VALUES,
        "timeout": _DURATION,
        "for_each": _REFERENCE,
        "max_items": {"type": "integer", "minimum": 1, "maximum": MAX_ITEMS_CEILING},
        "concurrency": {"type": "integer", "minimum": 1, "maximum": MAX_CONCURRENCY},
        "when": _REFERENCE,
        "after": {"type": "array", "items": _TEXT},
        "on_failure": {"enum": list(get_args(OnFailure))},
        "undo": UNDO,
    },
    dependentRequired={name: [home] for name, home in HOMES.items()} | {bound: ["for_each"] for bound in BOUNDS},
    oneOf=[{"required": [action]} for action in ACTIONS],
)

TASKGRAPH_V1: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": SCHEMA_VERSION,
} | _object(
    ("version", "name", "nodes"),
    {
        "version": {"const": SCHEMA_VERSION},
        "name": _form(ID),
        "description": _TEXT,
        "inputs": {
            "type": "object",
            "propertyNames": {"pattern": f"^{INPUT_NAME.pattern}$"},
            "additionalProperties": INPUT,
        },
        "nodes": {"type": "array", "minItems": 1, "maxItems": MAX_NODES, "items": NODE},
        "output": {"description": "What the plan gives; it may hold references. Left out: every node's result."},
    },
)
"""The document that `remit run FILE` takes."""
