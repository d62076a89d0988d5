"""The format `taskgraph-v1` as a JSON schema (2020-12), for editors and other programs.

check.py is stricter: a schema cannot say that a name is known, or that nodes do not wait for each other.
"""

from __future__ import annotations

from typing import Any, Final, get_args

from remit.jobs.plans.check import ACTIONS, MAX_CONCURRENCY, MAX_NODES
from remit.jobs.plans.plan import MAX_ITEMS_CEILING, SCHEMA_VERSION, InputType, OnFailure

_TEXT: Final = {"type": "string"}
_VALUES: Final = {"type": "object", "description": "Values by name; texts in it may hold references."}
_ID: Final = {"type": "string", "pattern": "^[a-z][a-z0-9_-]{0,63}$"}
_DURATION: Final = {
    "type": "string",
    "pattern": "^(?:[0-9]+d)?(?:[0-9]+h)?(?:[0-9]+m)?(?:[0-9]+s)?(?:[0-9]+ms)?$",
    "minLength": 2,
    "description": "Such as 500ms, 10s or 1h30m.",
}
_REFERENCE: Final = {
    "type": "string",
    "pattern": "^\\$\\{.+\\}$",
    "description": "One reference, such as ${find.value}.",
}

_INPUT: Final = {
    "type": "object",
    "additionalProperties": False,
    "required": ["type"],
    "properties": {
        "type": {"enum": list(get_args(InputType))},
        "default": {"description": "The value where none is given; without it the input has to be given."},
        "description": _TEXT,
    },
}
_WAIT: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "timer": _DURATION,
        "signal": {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}$"},
        "human": {"type": "string", "minLength": 1, "description": "The question; it may hold references."},
        "timeout": _DURATION,
        "details": {"description": "What the person is shown with the question; it may hold references."},
    },
    "oneOf": [
        {"required": ["timer"], "not": {"anyOf": [{"required": ["timeout"]}, {"required": ["details"]}]}},
        {"required": ["signal"], "not": {"required": ["details"]}},
        {"required": ["human"]},
    ],
}
_NODE: Final = {
    "type": "object",
    "additionalProperties": False,
    "required": ["id"],
    "properties": {
        "id": _ID,
        "description": _TEXT,
        "tool": {"type": "string", "pattern": "^[a-z0-9_]+(?:\\.[A-Za-z0-9_-]+)*$"},
        "args": _VALUES,
        "timeout": _DURATION,
        "recipe": {"type": "string", "pattern": "^[a-z][a-z0-9_]*(?:\\.[a-z][a-z0-9_]*)*$"},
        "input": _VALUES,
        "model": _VALUES,
        "agent": _VALUES,
        "wait": _WAIT,
        "for_each": _REFERENCE,
        "max_items": {"type": "integer", "minimum": 1, "maximum": MAX_ITEMS_CEILING},
        "concurrency": {"type": "integer", "minimum": 1, "maximum": MAX_CONCURRENCY},
        "when": _REFERENCE,
        "after": {"type": "array", "items": _TEXT},
        "undo": {
            "type": "object",
            "additionalProperties": False,
            "required": ["tool"],
            "properties": {
                "tool": {"type": "string", "pattern": "^[a-z0-9_]+(?:\\.[A-Za-z0-9_-]+)*$"},
                "args": _VALUES,
            },
            "description": "The call that undoes this one; it may refer to this node.",
        },
        "on_failure": {"enum": list(get_args(OnFailure))},
    },
    "dependentRequired": {
        "args": ["tool"],
        "timeout": ["tool"],
        "undo": ["tool"],
        "input": ["recipe"],
        "max_items": ["for_each"],
        "concurrency": ["for_each"],
    },
    "oneOf": [{"required": [action]} for action in ACTIONS],
}

TASKGRAPH_V1: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": SCHEMA_VERSION,
    "type": "object",
    "additionalProperties": False,
    "required": ["version", "name", "nodes"],
    "properties": {
        "version": {"const": SCHEMA_VERSION},
        "name": _ID,
        "description": _TEXT,
        "inputs": {
            "type": "object",
            "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_-]{0,63}$"},
            "additionalProperties": _INPUT,
        },
        "nodes": {"type": "array", "minItems": 1, "maxItems": MAX_NODES, "items": _NODE},
        "output": {"description": "What the plan gives; it may hold references. Left out: every node's result."},
    },
}
"""The document that `remit run FILE` takes."""
